"""Where each decoder layer looks while it writes one sentence (the paper's figure 3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import TypeAdapter

from convs2s.errors import failures_of_file
from convs2s.paper.charts import PANEL_WIDTH, Panel, Point, described, save_figure

_LONGEST_LABEL = 24  # characters
_SMALLEST_CELL = 14  # pixels, as the next two
_LARGEST_CELL = 28
_LARGEST_MAP = 430
_FONT_SHARE = 0.68  # of a cell's height, so that labels of neighbors do not touch


@dataclass(frozen=True)
class LayerCount:
    """How many decoder layers attend, as a score; the signature says to what, by which model."""

    score: int
    signature: str


@dataclass(frozen=True)
class ExampleAttention:
    """Attention on one sentence; weights (layers, target, source) sum to 1 over the source."""

    task: str
    model: str
    run: str
    scale: str  # of the run
    stand_in: str | None  # what its data is, where it is not the paper's
    source: str
    source_tokens: Sequence[str]  # what the model reads of the source, </s> last
    translation: str
    target_tokens: Sequence[str]  # what the model writes, </s> last
    layers: LayerCount
    weights: Sequence[Sequence[Sequence[float]]]

    def strongest(self) -> list[tuple[str, list[str]]]:
        """Return each target token with the source token that each layer looks at most."""
        places = np.array(self.weights).argmax(axis=2).T  # (target, layers)
        strongest = []
        for token, of_layers in zip(self.target_tokens, places, strict=True):
            strongest.append((token, [self.source_tokens[place] for place in of_layers]))
        return strongest


def read_example(path: Path) -> ExampleAttention:
    """Read an example; a UserError says that the file is none."""
    with failures_of_file(str(path), "no example's attention; delete it and ask for it again"):
        return TypeAdapter(ExampleAttention).validate_json(path.read_bytes())


def plot_example(*, example: Path, outputs: Sequence[Path]) -> None:
    """Draw a heat map for each decoder layer, two side by side, at a column's width."""
    shown = read_example(example)
    cell = max(4, PANEL_WIDTH // 2 // len(shown.target_tokens))
    panels = attention_maps(shown.weights, shown.source_tokens, shown.target_tokens, cell=cell)
    heading = [spread_note(len(shown.source_tokens))]
    save_figure(panels, outputs, heading=heading, stand_in=shown.stand_in, columns=2)


def plot_attention_maps(
    weights: ArrayLike,
    source: Sequence[str],
    target: Sequence[str],
    heading: str,
    outputs: Sequence[Path],
) -> None:
    """Draw a heat map for each layer, in as many columns as suit a screen: see `attention_maps`."""
    cell = min(_LARGEST_CELL, max(_SMALLEST_CELL, _LARGEST_MAP // max(len(source), len(target))))
    panels = attention_maps(weights, source, target, cell=cell)
    columns = map_columns(len(panels), len(source), len(target))
    save_figure(panels, outputs, heading=[heading, spread_note(len(source))], columns=columns)


def map_columns(layers: int, sources: int, targets: int) -> int:
    """Return the columns with which maps are about twice as wide as high, as a screen is."""
    return min(layers, math.ceil(math.sqrt(2 * layers * sources / targets)))


def attention_maps(
    weights: ArrayLike,
    source: Sequence[str],
    target: Sequence[str],
    *,
    cell: int = 16,
    has_legend: bool = True,
) -> list[Panel]:
    """Return a heat map for each attention layer, the source on the y-axis as in figure 3.

    The weights (layers, target, source) sum to 1 in each row over the source. A subtitle gives
    their `spread`, as colors of nearly equal weights hardly differ. A ValueError says that there is
    not a word for each position. A word takes ``cell`` pixels both ways.
    """
    maps = np.asarray(weights)
    _, targets, sources = maps.shape
    if (targets, sources) != (len(target), len(source)):
        raise ValueError(
            f"attention over {targets} target and {sources} source positions, but there are "
            f"{len(target)} target and {len(source)} source words"
        )
    # Symbols: a gradient would bring an id into the SVG that counts up within a process.
    symbols = {"type": "symbol", "symbolType": "square", "values": [0, 0.2, 0.4, 0.6, 0.8, 1]}
    panels = []
    for number, layer in enumerate(maps, start=1):
        rows: list[Point] = []
        for j, target_word in enumerate(target):
            for i, source_word in enumerate(source):
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
    """Return how far one layer's weights (target, source) spread: means over the target.

    The largest weight, and the entropy in nats, as Ghader and Monz (2017) measure attention.
    """
    entropies = -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=1)
    return f"largest {weights.max(axis=1).mean():.2f}, entropy {entropies.mean():.2f}"


def spread_note(sources: int) -> str:
    """Return what `spread` gives, and its value for weights that are all equal."""
    even = spread(np.full((1, sources), 1 / sources))
    return (
        "Above each map: largest weight and entropy (nats) of its columns, on average; "
        f"of even weights over {sources} tokens: {even}."
    )


def shorten(word: str) -> str:
    """Return a word that is not too long for a label."""
    return word if len(word) <= _LONGEST_LABEL else word[: _LONGEST_LABEL - 1] + "…"
