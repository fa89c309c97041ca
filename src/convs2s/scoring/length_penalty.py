"""The length penalty that scores best on a development set (section 4.3: en-de's on newstest2015).

A search ranks by alpha only what it has finished: at each step it goes by log-probabilities alone,
and when it stops does not depend on alpha either. So one n-best list with all finished hypotheses
holds what a search with any alpha would answer, and tuning needs no other search.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.files.text import read_lines, write_json, write_lines
from convs2s.scoring.bleu import Score, detokenized_bleu, length_ratio, tokenized_bleu
from convs2s.scoring.n_best import (
    LENGTH,
    LIKELIHOOD,
    Criterion,
    Group,
    best,
    every_sentence,
    read_n_best,
)
from convs2s.scoring.oracle import Reader
from convs2s.scoring.tuned_settings import PLAIN

ALPHAS = tuple(tenth / 10 for tenth in range(21))
"""The values that are tried: 0, 0.1, ... 2."""

COLUMNS = "length_penalty\ttokenized_bleu\tdetokenized_bleu\tlength_ratio"
"""Header of the table."""


@dataclass(frozen=True)
class Point:
    """What one value scores.

    Attributes:
        length_penalty: alpha.
        tokenized: BLEU by which the best is chosen.
        detokenized: BLEU of the same translations.
        length_ratio: their words by those of the references.
    """

    length_penalty: float
    tokenized: Score
    detokenized: Score
    length_ratio: float

    def row(self) -> str:
        """Return the line of the table."""
        scores = self.tokenized.score, self.detokenized.score, self.length_ratio
        return "\t".join(map(str, (self.length_penalty, *scores)))


def by_length_penalty(alpha: float) -> Criterion:
    """Return a search's final score, log-likelihood / |y|^alpha, of a hypothesis it has listed."""
    return lambda one: float(one.feature(LIKELIHOOD) / one.feature(LENGTH) ** alpha)


def curve(
    groups: Iterable[Group], raw: Sequence[str], tokenized: Sequence[str], restore: Reader
) -> list[Point]:
    """Score what each value of ``ALPHAS`` chooses from an n-best list.

    Args:
        groups: the list, in words, all hypotheses that a search has finished.
        raw: the references as published.
        tokenized: the references in words.
        restore: from words to plain text.

    Raises:
        UserError: the list is malformed, or its sentences are not as many as the references.
    """
    chosen: dict[float, list[str]] = {alpha: [] for alpha in ALPHAS}
    for group in every_sentence(groups):
        for alpha, texts in chosen.items():
            texts.append(best(group, by_length_penalty(alpha)).text)
    return [
        Point(
            alpha,
            tokenized_bleu(words, tokenized),
            detokenized_bleu([restore(line) for line in words], raw),
            length_ratio(words, tokenized).score,
        )
        for alpha, words in chosen.items()
    ]


def best_point(points: Iterable[Point]) -> Point:
    """Return the point of the highest tokenized BLEU; of equal ones the nearest to the paper's."""
    return max(points, key=lambda one: (one.tokenized.score, -abs(one.length_penalty - PLAIN)))


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

    Args:
        n_best: the list, in words, all hypotheses that a search has finished.
        raw: the target side as published.
        tokenized: the target side in words.
        tsv: the curve to write, a row a value.
        json: ``length_penalty`` and what it rests on, to write.
        restore: from words to plain text.
        header: what the tuning is of: task, model, run, decoding, test set, scale.
        manifest: what the numbers rest on.

    Raises:
        UserError: a file is missing or malformed, or the files differ in their number of lines.
    """
    published, in_words = (list(read_lines(path)) for path in (raw, tokenized))
    points = curve(read_n_best(read_lines(n_best), str(n_best)), published, in_words, restore)
    chosen = best_point(points)
    write_lines(tsv, [COLUMNS, *(point.row() for point in points)])
    result = {
        **header,
        "lines": len(published),
        "length_penalty": chosen.length_penalty,
        "tokenized_bleu": chosen.tokenized,
        "manifest": manifest,
    }
    write_json(json, result)
