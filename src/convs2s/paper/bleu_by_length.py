"""BLEU by sentence length, and by how rare the words are (Sutskever et al. 2014, figure 3)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from convs2s.data.vocabulary import read_counts
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_text
from convs2s.paper.charts import COLORS, SHAPES, save_figure
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
    sources, references = list(read_lines(source)), list(read_lines(reference))
    translated = [[" ".join(line.words) for line in read_translations(system)]]
    if baseline is not None:
        groups = every_sentence(read_n_best(read_lines(baseline), str(baseline)))
        translated.append([max(group, key=lambda row: row.score).text for group in groups])
    for file, lines in zip((source, system, baseline), [sources, *translated], strict=False):
        if len(lines) != len(references):
            raise UserError(
                f"{file} has {len(lines)} lines or lists but {reference} has {len(references)}: "
                "give translations of this test set, one of each line"
            )
    curves = dict(zip(names, translated, strict=True))
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
    values = {
        "length": np.array([len(row) for row in words], dtype=float),
        "rank": np.array(
            [sum(places.get(word, unknown) for word in row) / max(len(row), 1) for row in words]
        ),
    }
    for by, numbers in values.items():
        groups = groups_of_equal_size(numbers, count)
        for curve, lines in curves.items():
            for group in groups:
                score = tokenized_bleu(*([side[i] for i in group] for side in (lines, references)))
                of_group = numbers[group]
                spread = float(of_group.min()), float(of_group.max()), float(of_group.mean())
                yield GroupBleu(curve, by, len(group), *spread, score.score, score.signature)


def groups_of_equal_size(values: NDArray[np.float64], count: int) -> list[NDArray[np.intp]]:
    """Return the places of values in at most ``count`` groups by rising value, equals together."""
    edges = np.unique(np.quantile(values, np.arange(1, count) / count, method="inverted_cdf"))
    group_of = np.searchsorted(edges, values)  # a value that is an edge belongs below it
    return [np.flatnonzero(group_of == group) for group in np.unique(group_of)]


def _panel(points: Sequence[GroupBleu], by: str) -> alt.LayerChart:
    """Return the curves by length or rank; groups stand side by side, as they are equally large."""
    curves = list(dict.fromkeys(point.curve for point in points))
    drawn = [point for point in points if point.by == by]
    rows: list[dict[str, object]] = [
        {"curve": curve, "bleu": point.bleu, "group": number}
        for curve in curves
        for number, point in enumerate(point for point in drawn if point.curve == curve)
    ]
    # Groups may have equal labels, so they are told apart by number.
    ends = [
        dict.fromkeys((f"{point.lowest:.0f}", f"{point.highest:.0f}"))
        for point in drawn
        if point.curve == curves[0]
    ]
    spans = list(map("–".join, ends))
    axis = alt.Axis(labelAngle=-45, labelExpr=f"{json.dumps(spans)}[datum.value]")
    # The axis goes from 0 and is that of both panels.
    domain = [0, 1.05 * max(1.0, *(point.bleu for point in points))]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("group:O", sort=None, title=AXES[by], axis=axis),
        y=alt.Y("bleu:Q", title="tokenized BLEU (0 to 100)", scale=alt.Scale(domain=domain)),
        color=alt.Color("curve:N", title=None, scale=alt.Scale(domain=curves, range=COLORS)),
    )
    shape = alt.Shape("curve:N", title=None, scale=alt.Scale(domain=curves, range=SHAPES))
    marks = base.mark_point(filled=True, opacity=1).encode(shape=shape)
    return alt.LayerChart(layer=[base.mark_line(), marks]).properties(height=150)
