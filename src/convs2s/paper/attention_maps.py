"""Attention maps of each decoder layer for one sentence (the paper's figure 3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convs2s.files.text import read_checked
from convs2s.paper.charts import PANEL_WIDTH, Panel, Point, described, save_figure
from convs2s.paper.ledger import RunScore

_LONGEST_LABEL = 24  # characters
_SMALLEST_CELL = 14  # pixels
_LARGEST_CELL = 28  # pixels
_LARGEST_MAP = 430  # pixels
# Font size as a share of a cell's height, so that adjacent labels do not touch.
_FONT_SHARE = 0.68


@dataclass(frozen=True)
class ExampleAttention:
    """A translated sentence, with the attention weights of each decoder layer."""

    task: str
    model: str
    run: str
    scale: str  # the scale at which the run was made
    # The data that stands in for the paper's; None for the paper's data.
    stand_in: str | None
    source: str
    source_tokens: Sequence[str]  # the tokens that the model reads, </s> last
    translation: str
    target_tokens: Sequence[str]  # the tokens that the model writes, </s> last
    # The number of decoder layers with attention, as a score. Its signature states the lengths of
    # source and translation, the model and the run.
    layers: RunScore
    # (layers, target, source), sum 1 over the source
    weights: Sequence[Sequence[Sequence[float]]]

    def strongest(self) -> list[tuple[str, list[str]]]:
        """Return each target token with the source token of the largest weight in each layer."""
        positions = np.array(self.weights).argmax(axis=2).T  # (target, layers)
        sources = np.array(self.source_tokens)[positions].tolist()
        return list(zip(self.target_tokens, sources, strict=True))


def read_example(path: Path) -> ExampleAttention:
    """Read the attention on an example sentence.

    Raises:
        UserError: the file is damaged.
    """
    problem = (
        "not the attention on an example sentence; delete the file and make it again"
    )
    return read_checked(path, ExampleAttention, problem)


def plot_example(*, example: Path, outputs: Sequence[Path]) -> None:
    """Draw a heat map for each decoder layer, two in a row, as wide as a column of a paper."""
    shown = read_example(example)
    # Two maps share the width of a panel, unless their cells would be smaller than 4 pixels.
    cell = max(4, PANEL_WIDTH // 2 // len(shown.target_tokens))
    panels = attention_maps(
        shown.weights, shown.source_tokens, shown.target_tokens, cell=cell
    )
    heading = [spread_note(len(shown.source_tokens))]
    save_figure(panels, outputs, heading=heading, stand_in=shown.stand_in, columns=2)


def plot_attention_maps(
    weights: ArrayLike,
    source: Sequence[str],
    target: Sequence[str],
    heading: str,
    outputs: Sequence[Path],
) -> None:
    """Draw a heat map for each layer (`attention_maps`), arranged for a screen."""
    cell = _LARGEST_MAP // max(len(source), len(target))
    cell = min(_LARGEST_CELL, max(_SMALLEST_CELL, cell))
    panels = attention_maps(weights, source, target, cell=cell)
    # This number of columns makes the figure about twice as wide as high: its width is proportional
    # to columns * target, and its height to panels / columns * source.
    columns = math.ceil(math.sqrt(2 * len(panels) * len(source) / len(target)))
    save_figure(
        panels,
        outputs,
        heading=[heading, spread_note(len(source))],
        columns=min(len(panels), columns),
    )


def attention_maps(
    weights: ArrayLike,
    source: Sequence[str],
    target: Sequence[str],
    *,
    cell: int = 16,
    has_legend: bool = True,
) -> list[Panel]:
    """Return a heat map for each attention layer, with the source on the y-axis as in figure 3.

    ``weights`` has the shape (layers, target, source) and sums to 1 over the source. ``cell`` is
    the width and height of a cell in pixels. A subtitle gives the `spread` of the weights, because
    the colors of nearly equal weights hardly differ.

    Raises:
        ValueError: the number of words differs from the number of positions.
    """
    maps = np.asarray(weights)
    _, targets, sources = maps.shape
    if (targets, sources) != (len(target), len(source)):
        raise ValueError(
            f"attention over {targets} target and {sources} source positions, but there are "
            f"{len(target)} target and {len(source)} source words"
        )
    # The legend has symbols and no gradient. A gradient gets an id that counts up within a process,
    # so the bytes of the SVG would depend on what was drawn before.
    symbols = {
        "type": "symbol",
        "symbolType": "square",
        "values": [0, 0.2, 0.4, 0.6, 0.8, 1],
    }
    panels = []
    for number, layer in enumerate(maps, start=1):
        rows: list[Point] = []
        for j, target_word in enumerate(target):
            for i, source_word in enumerate(source):
                # Vega-Lite would merge equal words, so "s" and "t" begin with the position.
                rows.append(
                    {
                        "s": f"{i} {shorten(source_word)}",
                        "t": f"{j} {shorten(target_word)}",
                        "source": source_word,
                        "target": target_word,
                        "w": round(float(layer[j, i]), 4),
                    }
                )
        panel = described(
            "attention_map",
            layer=f"layer {number}",
            spread=spread(layer),
            cell=cell,
            size=min(10.0, _FONT_SHARE * cell),
            weights=rows,
            legend=symbols if has_legend else None,
        )
        panels.append(panel)
    return panels


def spread(weights: NDArray[np.floating[Any]]) -> str:
    """Describe how widely the weights of one layer (target, source) are spread over the source.

    The text states the largest weight and the entropy in nats, both as means over the target.
    Ghader and Monz (2017) measure attention by this entropy.
    """
    # A weight of 0 adds nothing to the entropy, so its logarithm is replaced by log(1).
    entropies = -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=1)
    return f"largest {weights.max(axis=1).mean():.2f}, entropy {entropies.mean():.2f}"


def spread_note(sources: int) -> str:
    """Return a note that explains `spread` and gives its value for ``sources`` equal weights."""
    even = spread(np.full((1, sources), 1 / sources))
    return (
        "Above each map: largest weight and entropy (nats) of its columns, on average; "
        f"of even weights over {sources} tokens: {even}."
    )


def shorten(word: str) -> str:
    """Return a word, cut to `_LONGEST_LABEL` characters with an ellipsis if it is longer."""
    return word if len(word) <= _LONGEST_LABEL else word[: _LONGEST_LABEL - 1] + "…"
