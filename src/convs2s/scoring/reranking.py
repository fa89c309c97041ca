"""Choices from n-best lists and what they score: rescoring, the oracle, the length penalty.

A search ranks by the length penalty alpha only what it has finished: at each step it goes by
log-probabilities alone, and when it stops does not depend on alpha either. So one n-best list with
all finished hypotheses holds what a search with any alpha would answer, and tuning alpha on a
development set (section 4.3: en-de's on newstest2015) needs no other search.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from convs2s.files.text import read_lines, write_json, write_lines
from convs2s.scoring.bleu import (
    BleuForm,
    Lines,
    Score,
    SentenceBleu,
    check_lines,
    detokenized_bleu,
    length_ratio,
    tokenized_bleu,
)
from convs2s.scoring.evaluation import bleu_scores
from convs2s.scoring.n_best import (
    LENGTH,
    LIKELIHOOD,
    MODEL,
    Criterion,
    Group,
    average_with,
    every_sentence,
    read_n_best,
)
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.tuned_settings import PLAIN

K = TypeVar("K")
Reader = Callable[[str], str]  # from a hypothesis's text in the list to another form of it

ALPHAS = tuple(tenth / 10 for tenth in range(21))
"""The length penalties that are tried: 0, 0.1, ... 2."""

COLUMNS = "length_penalty\ttokenized_bleu\tdetokenized_bleu\tlength_ratio"
"""Header of the table of a tuning."""


def first_and_oracle(
    groups: Iterable[Group],
    references: Sequence[Lines],
    form: BleuForm,
    read: Reader = str,
    name: object = "hypotheses",
    files: Sequence[object] = (),
) -> tuple[list[str], list[str]]:
    """Choose from an n-best list by its own score, and the best that could be chosen.

    Which choice gives the highest BLEU of the whole set cannot be decided sentence by sentence, and
    there are too many choices to try. So the oracle takes each sentence's hypothesis with the
    highest smoothed BLEU of its own, of equal ones the one that the list prefers. Where that scores
    less than the list's own choice, as in sets of a few sentences, it is the list's own.

    The references are one or more lists of lines in the form that ``form``, the BLEU to choose by,
    asks for; ``read`` brings a hypothesis's text into that form. A list that has not a hypothesis
    of each of their sentences is refused with a UserError, by its ``name`` and their ``files``.
    """
    sentence_bleu = SentenceBleu(form)
    first = list[str]()
    best = list[str]()
    shortest = min(len(lines) for lines in references)
    for number, group in enumerate(every_sentence(groups)):
        best_first = sorted(group, key=lambda listed: -listed.score)
        texts = [read(listed.text) for listed in best_first]
        first.append(texts[0])
        if number < shortest:  # else check_lines says below that the list has more
            wanted = [lines[number] for lines in references]
            best.append(max(texts, key=lambda text: sentence_bleu(text, *wanted)))
    check_lines(first, references, name, files)
    metric = tokenized_bleu if form == "tokenized" else detokenized_bleu
    if metric(best, *references).score < metric(first, *references).score:
        best = first
    return first, best


def rescore_n_best(
    *,
    n_best: Path,
    raw: Path,
    tokenized: Path,
    translations: Path,
    report: Report,
    restore: Reader,
    test_set: str,
    manifest: Mapping[str, object],
) -> None:
    """Choose from a scored n-best list in four ways, score each, and write the average's choice.

    The list is in words and has the feature of the rescoring model. ``raw`` is the target side as
    published, ``tokenized`` the same in words; ``restore`` makes plain text of words.
    """
    published = list(read_lines(raw))
    in_words = list(read_lines(tokenized))

    # Read twice, so that no more than a sentence of it is in memory.
    def groups() -> Iterator[Group]:
        return read_n_best(read_lines(n_best), str(n_best))

    first, oracle = first_and_oracle(
        groups(), [in_words], "tokenized", name=n_best, files=[tokenized]
    )
    by_model: dict[str, Criterion] = {
        "model": lambda listed: listed.feature(MODEL),
        "average": average_with(MODEL),
    }
    choices = {"first": first, **chosen(groups(), by_model), "oracle": oracle}
    bleu = {}
    for name, words in choices.items():
        plain = [restore(line) for line in words]
        if name == "average":
            write_lines(translations, plain)
        bleu[name] = bleu_scores(words, in_words, plain, published)
    report.write(
        "rescored.txt.j2",
        test_set=test_set,
        lines=len(published),
        bleu=bleu,
        manifest=manifest,
    )


def chosen(groups: Iterable[Group], criteria: Mapping[K, Criterion]) -> dict[K, list[str]]:
    """Return what each criterion chooses from a list, of each sentence."""
    texts: dict[K, list[str]] = {name: [] for name in criteria}
    for group in every_sentence(groups):
        for name, criterion in criteria.items():
            texts[name].append(max(group, key=criterion).text)
    return texts


@dataclass(frozen=True)
class TunedPoint:
    """What one value of alpha scores; the tokenized BLEU decides."""

    length_penalty: float
    tokenized: Score
    detokenized: Score
    length_ratio: float


def by_length_penalty(alpha: float) -> Criterion:
    """Return a search's final score, log-likelihood / |y|^alpha, of a hypothesis it has listed."""
    return lambda listed: float(listed.feature(LIKELIHOOD) / listed.feature(LENGTH) ** alpha)


def curve(
    groups: Iterable[Group],
    raw: Lines,
    tokenized: Lines,
    restore: Reader,
) -> list[TunedPoint]:
    """Score what each value of ``ALPHAS`` chooses from a list of all that a search has finished."""
    criteria = {alpha: by_length_penalty(alpha) for alpha in ALPHAS}
    points = []
    for alpha, words in chosen(groups, criteria).items():
        plain = [restore(line) for line in words]
        point = TunedPoint(
            length_penalty=alpha,
            tokenized=tokenized_bleu(words, tokenized),
            detokenized=detokenized_bleu(plain, raw),
            length_ratio=length_ratio(words, tokenized),
        )
        points.append(point)
    return points


def best_point(points: Iterable[TunedPoint]) -> TunedPoint:
    """Return the point of the highest tokenized BLEU; of equal ones the nearest to the paper's."""
    return max(points, key=lambda each: (each.tokenized.score, -abs(each.length_penalty - PLAIN)))


def tune_length_penalty(
    *,
    n_best: Path,
    raw: Path,
    tokenized: Path,
    tsv: Path,
    json: Path,
    restore: Reader,
    header: Mapping[str, str | None],
    manifest: Mapping[str, object],
) -> None:
    """Tune the length penalty on an n-best list and write its curve and the best value.

    The list is in words and has all hypotheses that a search has finished. ``raw`` is the target
    side as published, ``tokenized`` the same in words; ``restore`` makes plain text of words.
    """
    published = list(read_lines(raw))
    in_words = list(read_lines(tokenized))
    groups = read_n_best(read_lines(n_best), str(n_best))
    points = curve(groups, published, in_words, restore)
    table = [COLUMNS]
    for point in points:
        scores = f"{point.tokenized.score}\t{point.detokenized.score}"
        table.append(f"{point.length_penalty}\t{scores}\t{point.length_ratio}")
    write_lines(tsv, table)
    best = best_point(points)
    content = {
        **header,
        "lines": len(published),
        "length_penalty": best.length_penalty,
        "tokenized_bleu": best.tokenized,
        "manifest": manifest,
    }
    write_json(json, content)
