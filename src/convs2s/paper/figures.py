"""Two plots of a run: how it learned, and where its decoder layers look (the paper's figure 3)."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from convs2s.errors import UserError
from convs2s.paper.map_grid import MapGrid
from convs2s.paper.plotting import ring, save, style
from convs2s.training.history import EpochRecord, perplexity, read_history

# of Okabe and Ito's palette, which all eyes tell apart
_TRAINING, _VALIDATION, _RATE = "#0072b2", "#d55e00", "#444444"
_LONGEST_LABEL = 24  # characters


def plot_learning_curve(*, history: Path, heading: str, outputs: Sequence[Path]) -> None:
    """Draw perplexity and learning rate by epoch.

    Args:
        history: the trainer's ``history.jsonl``: a row an epoch; the last may say why it stopped.
        heading: what it is the history of.
        outputs: where to write the figure; the suffix says the format (.svg, .png).

    Raises:
        UserError: the history is missing or holds no epoch.
    """
    found = read_history(history)
    epochs = found.epochs
    if not epochs:
        raise UserError(f"{history}: no epoch, so there is no curve; train for at least one epoch")
    with style():
        figure = Figure(figsize=(7, 5), layout="constrained")
        figure.suptitle(heading, fontsize=8)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        _draw_perplexity(upper, epochs)
        _draw_learning_rate(lower, epochs)
        for epoch in _drops(epochs):
            for axes in (upper, lower):
                axes.axvline(epoch - 0.5, color=_RATE, linewidth=0.8, linestyle=":", zorder=1)
        reason = f"; stopped: {found.stop}" if found.stop else ""
        lower.set_xlabel(f"epoch{reason}", wrap=True)
        save(figure, outputs)


def attention_maps(
    attention: NDArray[np.floating[Any]],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    heading: str,
    outputs: Sequence[Path],
) -> None:
    """Draw a heat map for each attention layer, the source on the y-axis as in figure 3.

    Args:
        attention: (layers, target, source), each row over the source summing to 1.
        source_tokens: words or tokens, one for each source position.
        target_tokens: the same for the target.
        heading: whose attention it is.
        outputs: where to write the figure; the suffix says the format (.svg, .png).

    Raises:
        ValueError: the words are not as many as the attention's positions.
    """
    layers, targets, sources = attention.shape
    if (targets, sources) != (len(target_tokens), len(source_tokens)):
        raise ValueError(
            f"attention over {targets} target and {sources} source positions, but there are "
            f"{len(target_tokens)} target and {len(source_tokens)} source words"
        )
    source_labels = [shorten(word) for word in source_tokens]
    target_labels = [shorten(word) for word in target_tokens]
    with style([*source_labels, *target_labels]):
        layout = MapGrid.fit(layers, source_labels, target_labels)
        figure, grid, bar = layout.draw(heading)
        for axes in grid.flat[layers:]:
            axes.set_axis_off()
        for number, (axes, weights) in enumerate(zip(grid.flat, attention, strict=False), start=1):
            image = draw_map(axes, weights.T, f"layer {number}")
            axes.set_xticks(range(targets), target_labels, rotation=90, fontsize=layout.fontsize)
        for axes in grid[:, 0]:
            axes.set_yticks(range(sources), source_labels, fontsize=layout.fontsize)
        grid[0, 0].set(xlabel="target", ylabel="source")
        figure.colorbar(image, cax=bar, label="attention").outline.set_visible(False)
        save(figure, outputs)


def _draw_perplexity(axes: Axes, epochs: Sequence[EpochRecord]) -> None:
    numbers = [row.epoch for row in epochs]
    best = min(epochs, key=lambda row: row.valid_perplexity)
    marker = "." if len(epochs) <= 60 else ""
    training = [perplexity(row.train_loss) for row in epochs]
    validation = [row.valid_perplexity for row in epochs]
    axes.semilogy(numbers, training, color=_TRAINING, marker=marker, label="training")
    axes.semilogy(numbers, validation, color=_VALIDATION, marker=marker, label="validation")
    lowest, epoch = best.valid_perplexity, best.epoch
    ring(axes, epoch, lowest, _VALIDATION, f"best: {lowest:.4g} in epoch {epoch}")
    axes.set_ylabel("perplexity")
    _use_plain_numbers(axes, (1, 2, 5))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)


def _draw_learning_rate(axes: Axes, epochs: Sequence[EpochRecord]) -> None:
    numbers = [row.epoch for row in epochs]
    edges = [numbers[0] - 0.5, *(number + 0.5 for number in numbers)]
    axes.stairs([row.learning_rate for row in epochs], edges, baseline=None, color=_RATE)
    axes.set_yscale("log")
    axes.margins(x=0, y=0.2)
    axes.set_ylabel("learning rate")
    _use_plain_numbers(axes, (1,))
    rates = sorted({row.learning_rate for row in epochs})
    if len(rates) <= 5:
        axes.set_yticks(rates)
        axes.minorticks_off()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _drops(epochs: Sequence[EpochRecord]) -> list[int]:
    """Return the epochs whose learning rate is lower than the one before."""
    return [now.epoch for last, now in pairwise(epochs) if now.learning_rate < last.learning_rate]


def _use_plain_numbers(axes: Axes, multiples: Sequence[int]) -> None:
    """Label a logarithmic axis 20, 50, 100 instead of 10 to the power of something."""
    axes.yaxis.set_major_locator(LogLocator(subs=multiples))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_map(
    axes: Axes, attention: NDArray[np.floating[Any]], title: str, gap: float = 1
) -> AxesImage:
    """Draw (source, target) with the first source word at the top, ``gap`` points between cells."""
    image = axes.imshow(attention, cmap="magma_r", vmin=0, vmax=1, interpolation="none")
    sources, targets = attention.shape
    axes.set_xticks(np.arange(1, targets) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, sources) - 0.5, minor=True)
    axes.set_yticks([])
    axes.grid(False)
    axes.grid(which="minor", color="white", alpha=1, linewidth=gap)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title)
    return image


def shorten(word: str) -> str:
    """Return a word that is not too long for a label."""
    return word if len(word) <= _LONGEST_LABEL else word[: _LONGEST_LABEL - 1] + "…"
