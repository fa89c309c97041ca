"""What a training logs: on the standard error, and in a file of its own that all its tries share.

Snakemake removes the log of a job before it starts it again, so that of a training lies beside its
states as well, where no rule knows of it.
"""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LOG_NAME = "train.log"  # Name of the log of all tries, in the folder of the states


@dataclass
class _Speaker:
    """The speaker of this process: its lines' label, and the log that outlives its tries."""

    label: str = ""
    quiet: bool = False
    kept: Path | None = None


_speaker = _Speaker()


@contextmanager
def speaking_as(label: str, *, quiet: bool = False) -> Iterator[None]:
    """Begin each line of the block with a label, as several trainings may share a terminal.

    ``quiet``: say the lines in the kept log alone.
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
    """Add each line of the block to the log in a folder too."""
    _speaker.kept = folder / LOG_NAME
    try:
        yield
    finally:
        _speaker.kept = None


def label() -> str:
    """Return what lines begin with: a label and what parts it from the rest, or nothing."""
    return _speaker.label


def on_terminal() -> bool:
    """Return whether a person watches the lines as they are said."""
    return sys.stderr.isatty() and not _speaker.quiet


def log(message: str) -> None:
    """Say a line."""
    if not _speaker.quiet:
        try:
            print(f"{_speaker.label}{message}", file=sys.stderr)
        except OSError:  # its reader has gone, or its disk is full: the kept log has the lines
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    keep(message)


def keep(message: str) -> None:
    """Add a line to the kept log alone; a disk that is full ends no training over its log."""
    if _speaker.kept is not None:
        with suppress(OSError), _speaker.kept.open("a", encoding="utf-8") as stream:
            stream.write(f"{_speaker.label}{message}\n")


def duration(seconds: float) -> str:
    """Return a time as people say it: ``40 s``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``."""
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {rest} min"
    return f"{hours // 24} d {hours % 24} h"
