"""The status of a results folder as text: a table of trainings, jobs, and the ends of logs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from convs2s.pipeline.status import ORDER, Condition, JobStatus, Status, TrainingStatus
from convs2s.training.log import duration

WIDTH = 160  # columns of the output if it is not a terminal
NARROW = 120  # on fewer columns, some figures of a training are left out

STYLES: dict[Condition, str] = {
    "running": "green",
    "locked": "magenta",
    "crashed": "bold red",
    "stopped": "yellow",
    "not started": "dim",
    "finished": "dim",
}

# Rows of a full screen that are kept free of trainings, for jobs and logs.
KEPT_ROWS = 8

SILENCE_SHOWN = 120.0
"""Seconds without progress after which the row of a running training says ``silent for``."""


def console() -> Console:
    """Return the console to print the status on; it has ``WIDTH`` columns if it is no terminal."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = WIDTH
    return out


def view(
    status: Status,
    rows: int | None = None,
    width: int = WIDTH,
) -> RenderableType:
    """Return the view of a status, on at most ``rows`` rows; None means any number.

    Trainings come first, then jobs: their numbers by condition, those that run, and the last lines
    of the logs of those that crashed.
    """
    shown = status.trainings
    if rows is not None:
        shown = shown[: max(1, rows - KEPT_ROWS)]
    fits = rows is not None
    counts = f"trainings: {_counts(status.trainings)}"
    above: list[RenderableType] = [Text(counts, no_wrap=fits, overflow="ellipsis")]
    if shown:
        above.append(_table(shown, fits, width))
    below = []
    if len(shown) < len(status.trainings):
        below.append(Text(f"and {len(status.trainings) - len(shown)} more"))
    if status.jobs:
        below.append(Text(f"jobs: {_counts(status.jobs)}"))
    for job in status.jobs:
        if job.condition == "running":
            below.append(Text(f"    {job.name} running, {job.owner}"))
    listed: list[TrainingStatus | JobStatus] = [*shown, *status.jobs]
    for training_or_job in listed:
        if training_or_job.condition == "crashed":
            below.append(Text(f"{training_or_job.name} crashed:", STYLES["crashed"]))
            below += [Text(f"    {line}") for line in training_or_job.log]
    if rows is not None:
        # Two rows are taken by the counts of trainings and the header of their table.
        below = below[: max(0, rows - len(shown) - 2)]
        for line in below:
            line.no_wrap = True
            line.overflow = "ellipsis"
    return Group(*above, *below)


def _counts(statuses: Sequence[TrainingStatus | JobStatus]) -> str:
    counts = Counter(status.condition for status in statuses)
    named = (f"{counts[name]:,} {name}" for name in ORDER if counts[name])
    return ", ".join(named) or "none"


def _table(
    trainings: Iterable[TrainingStatus],
    fits: bool,
    width: int,
) -> Table:
    """Return a table with a row for each training.

    If the table has to fit on a screen (``fits``), each row takes one line, and the beginning of a
    name that is too long is cut off. A narrow table has fewer figures.
    """
    table = Table(box=None, pad_edge=False)
    overflow: Literal["ellipsis", "fold"] = "ellipsis" if fits else "fold"
    name_width = width // 5
    table.add_column(
        "training", overflow=overflow, width=name_width if fits else None, min_width=12
    )
    table.add_column("is", no_wrap=True)
    figures = ["epoch", "updates", "loss", "perplexity", "tokens/s", "left", "state"]
    if width < NARROW:
        figures = ["epoch", "perplexity", "tokens/s", "left"]
    for name in figures:
        table.add_column(name, justify="right", no_wrap=fits or name != "left")
    table.add_column("why", overflow=overflow, min_width=8)
    for run in trainings:
        values = _figures(run)
        name = run.name
        if fits and len(name) > name_width:
            name = f"…{name[1 - name_width :]}"
        # no_wrap is set for these texts and not for their columns. A column that does not wrap
        # keeps its width, so that the columns of figures would become too narrow.
        table.add_row(
            Text(name, no_wrap=fits),
            Text(run.condition, STYLES[run.condition]),
            *(values.get(figure, "") for figure in figures),
            Text(_why(run), no_wrap=fits),
        )
    return table


def _figures(run: TrainingStatus) -> dict[str, str]:
    """Return the known figures of a training as texts, by the names of their columns."""
    values = {}
    if run.epoch:
        values["epoch"] = f"{run.epoch}"
        if run.epochs:
            # The number of epochs is a fraction if the last one is cut short.
            values["epoch"] += f"/{ceil(run.epochs)}"
        if run.batches:
            values["epoch"] += f" {100 * (run.batch or 0) // run.batches}%"
    if run.updates is not None:
        values["updates"] = f"{run.updates:,}"
    if run.loss is not None:
        values["loss"] = f"{run.loss:.3f}"
    if run.perplexity is not None:
        values["perplexity"] = f"{run.perplexity:.2f}"
    if run.tokens_per_second is not None:
        values["tokens/s"] = f"{run.tokens_per_second:,}"
    if run.seconds:
        values["left"] = duration(run.seconds)
    elif run.seconds_of_epoch is not None:
        values["left"] = f"{duration(run.seconds_of_epoch)} of epoch"
    if run.state_seconds is not None:
        values["state"] = f"{duration(run.state_seconds)} old"
    return values


def _why(run: TrainingStatus) -> str:
    """Return the reason for a training's condition and, if it runs, its process and silence."""
    words = [run.why]
    if run.condition == "running":
        words.append(run.owner)
        silent = run.silent_seconds or 0.0
        if silent > SILENCE_SHOWN:
            words.append(f"silent for {duration(silent)}")
    return ", ".join(filter(None, words))
