"""The status of a results folder for people: a table, and the last words of what crashed."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from convs2s.pipeline.status import ORDER, Condition, JobStatus, Status, TrainingStatus
from convs2s.training.log import duration

WIDTH = 160
"""Columns where the output is no terminal."""

STYLES: dict[Condition, str] = {
    "running": "green",
    "locked": "magenta",
    "crashed": "bold red",
    "stopped": "yellow",
    "not started": "dim",
    "finished": "dim",
}

KEPT_ROWS = 8
"""Lines of a full screen that are kept for other things than trainings."""

SILENCE_SHOWN = 120.0
"""Seconds without a word from a running training from which on its row says so."""


def console() -> Console:
    """Return where the status is printed."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=WIDTH)


def view(found: Status, rows: int | None = None) -> RenderableType:
    """Return what is shown.

    Args:
        found: the status.
        rows: how many lines fit; None: any number.
    """
    most = len(found.trainings) if rows is None else max(1, rows - KEPT_ROWS)
    shown, fits = found.trainings[:most], rows is not None
    above = [Text(f"trainings: {_counts(found.trainings)}")]
    below = []
    if len(shown) < len(found.trainings):
        below.append(Text(f"and {len(found.trainings) - len(shown)} more"))
    if found.jobs:
        below.append(Text(f"jobs: {_counts(found.jobs)}"))
    below += [_job_line(job) for job in found.jobs if job.condition == "running"]
    ended: list[TrainingStatus | JobStatus] = [*shown, *found.jobs]
    for one in ended:
        if one.condition == "crashed":
            below.append(Text(f"{one.name} crashed:", STYLES["crashed"]))
            below += [Text(f"    {line}") for line in one.log]
    if rows is not None:
        below = below[: rows - len(shown) - 2]
    for line in below if fits else ():
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*above, *([_table(shown, fits)] if shown else []), *below)


def _counts(found: Sequence[TrainingStatus | JobStatus]) -> str:
    counted = Counter(one.condition for one in found)
    return ", ".join(f"{counted[one]:,} {one}" for one in ORDER if counted[one]) or "none"


def _job_line(job: JobStatus) -> Text:
    return Text(f"    {job.name} {job.condition}, {job.owner}")


def _table(trainings: Iterable[TrainingStatus], fits: bool) -> Table:
    """Return a row for each training, of a single line where it has to fit."""
    table = Table(box=None, pad_edge=False)
    for name in ("training", "is"):
        table.add_column(name, no_wrap=True)
    for name in ("epoch", "updates", "loss", "perplexity", "tokens/s", "left", "state"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why, by whom", overflow="ellipsis" if fits else "fold", no_wrap=fits)
    for one in trainings:
        table.add_row(
            one.name,
            Text(one.condition, STYLES[one.condition]),
            _epoch(one),
            "" if one.updates is None else f"{one.updates:,}",
            "" if one.loss is None else f"{one.loss:.3f}",
            "" if one.perplexity is None else f"{one.perplexity:.2f}",
            "" if one.tokens_per_second is None else f"{one.tokens_per_second:,}",
            "" if one.seconds is None else duration(one.seconds),
            "" if one.state_seconds is None else f"{duration(one.state_seconds)} old",
            Text(_why(one)),
        )
    return table


def _epoch(one: TrainingStatus) -> str:
    """Return the epoch, of how many, and how much of it is done."""
    if not one.epoch:
        return ""
    share = f" {100 * (one.batch or 0) // one.batches}%" if one.batches else ""
    return f"{one.epoch}" + (f"/{one.epochs:g}" if one.epochs else "") + share


def _why(one: TrainingStatus) -> str:
    if one.condition != "running":
        return one.why or ""
    said = [one.why or "", one.owner or ""]
    if one.silent_seconds is not None and one.silent_seconds > SILENCE_SHOWN:
        said.append(f"silent for {duration(one.silent_seconds)}")
    return ", ".join(filter(None, said))
