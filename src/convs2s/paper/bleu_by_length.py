"""BLEU by sentence length, and by how rare the words are (Sutskever et al. 2014, figure 3)."""

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
from convs2s.scoring.bleu import tokenized_bleu
from convs2s.scoring.n_best import every_sentence, read_n_best
from convs2s.scoring.translations import read_translations

GROUPS = 8  # groups of sentences, of about equal size: the paper's axis has as many spans

AXES = {
    "length": "source sentence length (words)",
    "rank": "mean frequency rank of the source words",
}
"""What sentences are sorted by -> the label of its axis."""


@dataclass(frozen=True)
class GroupBleu:
    """Tokenized BLEU of one group of sentences as a corpus; lowest to mean are lengths or ranks."""

    curve: str  # the translations' name
    by: str  # what the sentences are sorted by, a key of AXES
    sentences: int  # how many are in the group
    lowest: float
    highest: float
    mean: float
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
    """Draw BLEU by sentence length and by rarity of words, and write what is drawn as CSV.

    ``names`` are the legend's, of the translations in ``system`` (the decoder's JSON lines) and of
    the baseline, another system's n-best list, of which the best count. Source and reference are in
    words; the source's vocabulary has the most frequent type first. A UserError says that a file is
    missing or malformed, or that the files differ in their number of lines.
    """
    sources = list(read_lines(source))
    references = list(read_lines(reference))
    translated = {system: [" ".join(line.words) for line in read_translations(system)]}
    if baseline is not None:
        groups = every_sentence(read_n_best(read_lines(baseline), str(baseline)))
        translated[baseline] = [max(group, key=lambda row: row.score).text for group in groups]
    for file, lines in {source: sources, **translated}.items():
        if len(lines) != len(references):
            raise UserError(
                f"{file} has {len(lines)} lines or lists but {reference} has {len(references)}: "
                "give translations of this test set, one of each line"
            )
    curves = dict(zip(names, translated.values(), strict=True))
    scored = list(bleu_by_length(sources, references, curves, ranks(vocabulary)))
    write_text(points, pd.DataFrame(scored).to_csv(index=False, lineterminator="\n"))
    save_figure([_panel(scored, by) for by in AXES], outputs, stand_in=stand_in)


def ranks(vocabulary: Path) -> dict[str, int]:
    """Return the place of each type in a vocabulary by falling frequency, from 1."""
    return {word: place for place, (word, _) in enumerate(read_counts(vocabulary), start=1)}


def bleu_by_length(
    sources: Sequence[str],
    references: Sequence[str],
    curves: Mapping[str, Sequence[str]],
    places: Mapping[str, int],
    count: int = GROUPS,
) -> Iterator[GroupBleu]:
    """Yield the BLEU of each group of sentences, by length and by mean rank, for each curve.

    ``places`` are those of words by falling frequency; any other word comes one behind the last.
    Without any word the mean rank is 0.
    """
    words = [line.split() for line in sources]
    unknown = len(places) + 1
    lengths = [len(row) for row in words]
    mean_ranks = []
    for row in words:
        mean_ranks.append(sum(places.get(word, unknown) for word in row) / max(len(row), 1))
    for by, values in (("length", lengths), ("rank", mean_ranks)):
        numbers = np.array(values, dtype=float)
        groups = groups_of_equal_size(numbers, count)
        for curve, lines in curves.items():
            for group in groups:
                of_group = numbers[group]
                score = tokenized_bleu([lines[i] for i in group], [references[i] for i in group])
                yield GroupBleu(
                    curve,
                    by,
                    sentences=len(group),
                    lowest=float(of_group.min()),
                    highest=float(of_group.max()),
                    mean=float(of_group.mean()),
                    bleu=score.score,
                    signature=score.signature,
                )


def groups_of_equal_size(values: NDArray[np.float64], count: int) -> list[NDArray[np.intp]]:
    """Return the places of values in at most ``count`` groups by rising value, equals together."""
    edges = np.unique(np.quantile(values, np.arange(1, count) / count, method="inverted_cdf"))
    group_of = np.searchsorted(edges, values)  # a value that is an edge belongs below it
    return [np.flatnonzero(group_of == group) for group in np.unique(group_of)]


def _panel(points: Sequence[GroupBleu], by: str) -> Panel:
    """Return the curves by length or rank; groups stand side by side, as they are equally large."""
    curves = list(dict.fromkeys(point.curve for point in points))
    rows: list[Point] = []
    spans = []  # of the groups, which are told apart by number: they may have equal labels
    for curve in curves:
        of_curve = [point for point in points if (point.curve, point.by) == (curve, by)]
        for number, point in enumerate(of_curve):
            rows.append({"curve": curve, "bleu": point.bleu, "group": number})
            if curve == curves[0]:
                ends = dict.fromkeys([f"{point.lowest:.0f}", f"{point.highest:.0f}"])
                spans.append("–".join(ends))
    return described(
        "bleu_by_length",
        points=rows,
        axis=AXES[by],
        span=f"{json.dumps(spans)}[datum.value]",
        # The axis goes from 0 and is that of both panels.
        bleu=[0, 1.05 * max(1.0, *(point.bleu for point in points))],
        curves=curves,
    )
