"""BLEU by sentence length and by the rarity of words (Sutskever et al. 2014, figure 3)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from convs2s.data.vocabulary import read_counts
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_text
from convs2s.paper.charts import Panel, Point, described, save_figure
from convs2s.scoring.bleu import corpus_bleu
from convs2s.scoring.n_best import every_sentence, read_n_best
from convs2s.scoring.translations import read_translations

# Groups of sentences, of about equal size. The paper's axis also has 8 spans.
GROUPS = 8

AXES = {
    "length": "source sentence length (words)",
    "rank": "mean frequency rank of the source words",
}
"""Property by which the sentences are grouped -> the label of its axis."""


@dataclass(frozen=True)
class GroupBleu:
    """Tokenized BLEU of one group of sentences, as a corpus."""

    curve: str  # the name of the translations
    by: str  # the property by which the sentences are grouped, a key of AXES
    sentences: int  # number of sentences in the group
    lowest: float  # the lowest length or mean rank of a sentence in the group
    highest: float  # the highest length or mean rank
    mean: float  # the mean of the lengths or mean ranks
    bleu: float
    signature: str


def plot_bleu_by_length(
    *,
    names: Sequence[str],
    system: Path,
    baseline: Path | None,
    source: Path,
    reference: Path,
    vocabulary: Path,
    stand_in: str | None,
    outputs: Sequence[Path],
    points: Path,
) -> None:
    """Draw BLEU by sentence length and by the rarity of words, and write the points as CSV.

    Args:
        names: the names in the legend: of the system, and of the baseline if there is one.
        system: translations as the decoder's JSON lines.
        baseline: the n-best list of another system, of which the hypothesis with the best score of
            each sentence counts; None for no baseline.
        source: the tokenized source of the test set.
        reference: the tokenized reference.
        vocabulary: the vocabulary of the source, the most frequent type first.
        stand_in: what stands in for the paper's data; None for the paper's data.
        outputs: the files of the figure.
        points: the CSV file.

    Raises:
        UserError: a file is missing or malformed, or the files differ in their number of lines.
    """
    sources = list(read_lines(source))
    references = list(read_lines(reference))
    # File of a system -> its translations.
    translated = {system: [" ".join(line.words) for line in read_translations(system)]}
    if baseline is not None:
        groups = every_sentence(read_n_best(read_lines(baseline), str(baseline)))
        translated[baseline] = [
            max(group, key=lambda row: row.score).text for group in groups
        ]
    for file, lines in {source: sources, **translated}.items():
        if len(lines) != len(references):
            raise UserError(
                f"{file} has {len(lines)} lines or lists but {reference} has {len(references)}: "
                "give one translation of each line of this test set"
            )
    curves = dict(zip(names, translated.values(), strict=True))
    scored = list(bleu_by_length(sources, references, curves, ranks(vocabulary)))
    write_text(points, pd.DataFrame(scored).to_csv(index=False, lineterminator="\n"))
    save_figure([_panel(scored, by) for by in AXES], outputs, stand_in=stand_in)


def ranks(vocabulary: Path) -> dict[str, int]:
    """Return the frequency rank of each type in a vocabulary file; the most frequent has rank 1."""
    return {
        word: rank for rank, (word, _) in enumerate(read_counts(vocabulary), start=1)
    }


def bleu_by_length(
    sources: Sequence[str],
    references: Sequence[str],
    curves: Mapping[str, Sequence[str]],
    rank_of_word: Mapping[str, int],
) -> Iterator[GroupBleu]:
    """Yield the BLEU of each group of sentences, by length and by mean rank, for each curve.

    A word without a rank counts as one rank below the rarest word. The mean rank of a sentence
    without words is 0.
    """
    sentences = [line.split() for line in sources]
    unknown = len(rank_of_word) + 1  # the rank of a word that has none
    lengths = [len(words) for words in sentences]
    mean_ranks = []
    for words in sentences:
        sum_of_ranks = sum(rank_of_word.get(word, unknown) for word in words)
        mean_ranks.append(sum_of_ranks / max(len(words), 1))
    for by, values in (("length", lengths), ("rank", mean_ranks)):
        numbers = np.array(values, dtype=float)
        # Each group is the indices of its sentences.
        groups = groups_of_equal_size(numbers, GROUPS)
        for curve, lines in curves.items():
            for group in groups:
                values_of_group = numbers[group]
                score = corpus_bleu(
                    [lines[i] for i in group], [references[i] for i in group]
                )
                yield GroupBleu(
                    curve,
                    by,
                    sentences=len(group),
                    lowest=float(values_of_group.min()),
                    highest=float(values_of_group.max()),
                    mean=float(values_of_group.mean()),
                    bleu=score.score,
                    signature=score.signature,
                )


def groups_of_equal_size(
    values: NDArray[np.float64], count: int
) -> list[NDArray[np.intp]]:
    """Divide values into at most ``count`` groups; return the indices of the values of each group.

    The groups are of about equal size, the group of the lowest values first. Equal values are in
    the same group.
    """
    # Each edge is one of the values ("inverted_cdf"). Frequent values may give equal edges.
    edges = np.unique(
        np.quantile(values, np.arange(1, count) / count, method="inverted_cdf")
    )
    # A value that equals an edge is in the lower group.
    group_of = np.searchsorted(edges, values)
    return [np.flatnonzero(group_of == group) for group in np.unique(group_of)]


def _panel(points: Sequence[GroupBleu], by: str) -> Panel:
    """Return a panel with the curves by length or by rank (``by``).

    The groups are at equal distances on the x-axis, because they are of about equal size.
    """
    curves = list(dict.fromkeys(point.curve for point in points))
    rows: list[Point] = []
    # The label of each group. The axis has the numbers of the groups, because labels may be equal.
    spans = {}
    for curve in curves:
        points_of_curve = [
            point for point in points if (point.curve, point.by) == (curve, by)
        ]
        for number, point in enumerate(points_of_curve):
            rows.append({"curve": curve, "bleu": point.bleu, "group": number})
            lowest = f"{point.lowest:.0f}"
            highest = f"{point.highest:.0f}"
            spans[number] = lowest if lowest == highest else f"{lowest}–{highest}"
    return described(
        "bleu_by_length",
        points=rows,
        axis=AXES[by],
        # A Vega expression: the label of the group at a place of the axis.
        span=f"{json.dumps(spans)}[datum.value]",
        # Both panels have the same axis of BLEU, from 0 to above the best score.
        bleu=[0, 1.05 * max(1.0, *(point.bleu for point in points))],
        curves=curves,
    )
