"""Choose hypotheses from n-best lists and score the choices.

The choices are made by a rescoring model, by an oracle, or by one value of the length penalty.

A search uses the length penalty alpha only to rank its finished hypotheses. At each step it
compares log-probabilities only, and the end of the search does not depend on alpha either. So an
n-best list of all finished hypotheses contains the result of the search for every alpha. To tune
alpha on a development set, one search is enough (section 4.3: newstest2015 for en-de).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from convs2s.config.bleu import BleuForm, BleuTokenizer
from convs2s.files.text import read_lines, write_json, write_lines
from convs2s.scoring.bleu import (
    Lines,
    Score,
    check_lines,
    corpus_bleu,
    length_ratio,
    sentence_bleu,
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

Name = TypeVar("Name")
# A function that takes a text and returns it in another form.
Conversion = Callable[[str], str]

ALPHAS = tuple(tenth / 10 for tenth in range(21))
"""The values of the length penalty that the tuning tries: 0, 0.1, ..., 2."""


def first_and_oracle(
    groups: Iterable[Group],
    references: Sequence[Lines],
    form: BleuForm,
    convert: Conversion = str,
    name: object = "hypotheses",
    files: Sequence[object] = (),
) -> tuple[list[str], list[str]]:
    """Return the texts with the highest scores in an n-best list, and the texts of an oracle.

    The texts with the highest BLEU of the whole test set cannot be found sentence by sentence, and
    there are too many combinations to try all. So the oracle chooses, for each sentence, the
    hypothesis with the highest smoothed sentence BLEU. If several have this BLEU, the oracle takes
    the one with the highest score in the list. With few sentences, the oracle's texts can have a
    lower BLEU of the test set than the texts with the highest scores. In that case, the latter are
    returned for the oracle, too.

    Args:
        groups: the hypotheses of each sentence.
        references: one or more lists of lines, in the form that ``form`` needs.
        form: the kind of BLEU by which the oracle chooses.
        convert: converts a text of the list to that form.
        name: the name of the list in messages.
        files: the names of the references in messages.

    Raises:
        UserError: a sentence has no hypothesis in the list, or the list and the references differ
            in their number of sentences.
    """
    bleu = sentence_bleu(form)
    first: list[str] = []
    oracle: list[str] = []
    shortest = min(len(lines) for lines in references)
    for number, group in enumerate(every_sentence(groups)):
        best_first = sorted(group, key=lambda listed: -listed.score)
        texts = [convert(listed.text) for listed in best_first]
        first.append(texts[0])
        # If the list has more sentences than a reference, check_lines raises a UserError below.
        if number < shortest:
            expected = [lines[number] for lines in references]
            # Of texts with equal BLEU, max returns the first, which has the highest score.
            oracle.append(max(texts, key=lambda text: bleu(text, *expected)))
    check_lines(first, references, name, files)
    oracle_bleu = corpus_bleu(oracle, *references, form=form)
    if oracle_bleu.score < corpus_bleu(first, *references, form=form).score:
        oracle = first
    return first, oracle


def rescore_n_best(
    *,
    n_best: Path,
    raw: Path,
    tokenized: Path,
    translations: Path,
    report: Report,
    restore: Conversion,
    test_set: str,
    manifest: Mapping[str, object],
    tokenize: BleuTokenizer = "13a",
) -> None:
    """Choose from an n-best list in four ways, and write a report with the BLEU of each choice.

    The hypotheses are chosen by one of:

    - ``first``: the score in the list.
    - ``model``: the score of the rescoring model.
    - ``average``: the mean of both scores.
    - ``oracle``: the BLEU with the references (`first_and_oracle`).

    Args:
        n_best: a list in words, with the feature `MODEL` of the rescoring model.
        raw: the target side as published.
        tokenized: the target side in words.
        translations: the file for the texts that ``average`` chooses, as plain text.
        report: the files of the report.
        restore: converts a line of words to plain text.
        test_set: the name of the test set in the report.
        manifest: everything else that the numbers depend on.
        tokenize: the tokenizer of plain text.
    """
    published = list(read_lines(raw))
    in_words = list(read_lines(tokenized))

    # The list is read twice, so that only one sentence's hypotheses are in memory at a time.
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
    scores = {}
    for name, words in choices.items():
        plain = [restore(line) for line in words]
        if name == "average":
            write_lines(translations, plain)
        scores[name] = bleu_scores(words, in_words, plain, published, tokenize)
    report.write(
        "rescored.txt.j2",
        test_set=test_set,
        lines=len(published),
        bleu=scores,
        manifest=manifest,
    )


def chosen(
    groups: Iterable[Group], criteria: Mapping[Name, Criterion]
) -> dict[Name, list[str]]:
    """Return the texts that each criterion chooses from a list, one for each sentence.

    A criterion chooses the hypothesis with its highest value. If several have this value, it
    chooses the first of them in the list.
    """
    texts: dict[Name, list[str]] = {name: [] for name in criteria}
    for group in every_sentence(groups):
        for name, criterion in criteria.items():
            texts[name].append(max(group, key=criterion).text)
    return texts


@dataclass(frozen=True)
class TunedPoint:
    """The scores of the texts that one value of the length penalty chooses."""

    length_penalty: float
    tokenized: Score
    detokenized: Score
    length_ratio: float


def by_length_penalty(alpha: float) -> Criterion:
    """Return the criterion log-likelihood / |y|^alpha.

    A search with the length penalty alpha ranks its finished hypotheses by this value. The
    hypotheses must have the features that `n_best_line` writes.
    """
    return lambda listed: float(
        listed.feature(LIKELIHOOD) / listed.feature(LENGTH) ** alpha
    )


def curve(
    groups: Iterable[Group],
    raw: Lines,
    tokenized: Lines,
    restore: Conversion,
    tokenize: BleuTokenizer = "13a",
) -> list[TunedPoint]:
    """Return the scores of the texts that each value in ``ALPHAS`` chooses, in this order.

    Args:
        groups: all finished hypotheses of each sentence, in words.
        raw: the references as published.
        tokenized: the references in words.
        restore: converts a line of words to plain text.
        tokenize: the tokenizer of plain text.
    """
    criteria = {alpha: by_length_penalty(alpha) for alpha in ALPHAS}
    points = []
    for alpha, words in chosen(groups, criteria).items():
        plain = [restore(line) for line in words]
        point = TunedPoint(
            length_penalty=alpha,
            tokenized=corpus_bleu(words, tokenized),
            detokenized=corpus_bleu(plain, raw, form=tokenize),
            length_ratio=length_ratio(words, tokenized),
        )
        points.append(point)
    return points


def best_point(points: Iterable[TunedPoint]) -> TunedPoint:
    """Return the point with the highest tokenized BLEU.

    If several have this BLEU, return the one whose alpha is nearest to `PLAIN`, the paper's.
    """
    return max(
        points,
        key=lambda each: (each.tokenized.score, -abs(each.length_penalty - PLAIN)),
    )


def tune_length_penalty(
    *,
    n_best: Path,
    raw: Path,
    tokenized: Path,
    tsv: Path,
    json: Path,
    restore: Conversion,
    header: Mapping[str, str | None],
    manifest: Mapping[str, object],
    tokenize: BleuTokenizer = "13a",
) -> None:
    """Tune the length penalty on an n-best list, and write all scores and the best value.

    Args:
        n_best: a list in words, with all finished hypotheses of a search.
        raw: the target side as published.
        tokenized: the target side in words.
        tsv: the file for a table of the scores with each value.
        json: the file for the best value and its tokenized BLEU.
        restore: converts a line of words to plain text.
        header: the first entries of the JSON file.
        manifest: everything else that the numbers depend on.
        tokenize: the tokenizer of plain text.
    """
    published = list(read_lines(raw))
    in_words = list(read_lines(tokenized))
    groups = read_n_best(read_lines(n_best), str(n_best))
    points = curve(groups, published, in_words, restore, tokenize)
    table = ["length_penalty\ttokenized_bleu\tdetokenized_bleu\tlength_ratio"]
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
