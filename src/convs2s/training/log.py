"""The log of a training: on the standard error, and in a file that all of its tries share.

Snakemake removes the log of a job before it starts the job again. So a training also writes its log
into a file beside its states, which no rule declares as an output.
"""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LOG_NAME = "train.log"  # Name of the kept log, in the folder of the states


@dataclass
class _Speaker:
    """How this process logs."""

    label: str = ""  # beginning of each line, with a separator: ``TASK/MODEL/seed1: ``
    quiet: bool = False  # whether nothing is printed on the standard error
    kept: Path | None = None  # the kept log, if one is open


_speaker = _Speaker()


@contextmanager
def speaking_as(label: str, *, quiet: bool = False) -> Iterator[None]:
    """Begin each line that the block logs with a label: several trainings may share a terminal.

    With ``quiet``, write the lines only to the kept log.
    """
    _speaker.label = f"{label}: " if label else ""
    _speaker.quiet = quiet
    try:
        yield
    finally:
        _speaker.label = ""
        _speaker.quiet = False


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Also append each line that the block logs to the kept log in ``folder``."""
    _speaker.kept = folder / LOG_NAME
    try:
        yield
    finally:
        _speaker.kept = None


def label() -> str:
    """Return the beginning of each line: the label and a colon, or nothing without a label."""
    return _speaker.label


def on_terminal() -> bool:
    """Return whether lines are printed on a terminal."""
    return sys.stderr.isatty() and not _speaker.quiet


def log(message: str) -> None:
    """Log a line on the standard error, unless quiet, and in the kept log, if one is open."""
    if not _speaker.quiet:
        try:
            print(f"{_speaker.label}{message}", file=sys.stderr)
        except OSError:
            # The reader of a pipe has gone, or a disk is full. Discard all later output; the kept
            # log still gets the lines.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    keep(message)


def keep(message: str) -> None:
    """Log a line only in the kept log; ignore errors, so that a full disk ends no training."""
    if _speaker.kept is not None:
        with suppress(OSError), _speaker.kept.open("a", encoding="utf-8") as stream:
            stream.write(f"{_speaker.label}{message}\n")


def duration(seconds: float) -> str:
    """Return a duration in words: ``40 s``, ``12 min``, ``3 h 20 min`` or ``2 d 4 h``."""
    whole_seconds = math.ceil(seconds)
    if whole_seconds < 60:
        return f"{whole_seconds} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {rest} min"
    return f"{hours // 24} d {hours % 24} h"
