"""Show the progress of long work: a bar on a terminal, a line each minute in a log, or nothing."""

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Never, TextIO, TypeVar

from tqdm import tqdm

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 60.0  # in a log
_LINE = "{n_fmt} of {total_fmt}{unit}, {rate_fmt}, {remaining} left"


class _Lines:
    """A stream that writes each state of a bar on a line of its own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        if shown := text.strip():
            self._stream.write(f"{shown}\n")


def progress(
    unit: str,
    total: int | None = None,
    *,
    done: int = 0,
    silent: bool = False,
) -> "tqdm[Never]":
    """Return a progress bar on the standard error.

    If the standard error is not a terminal, the bar prints lines instead.

    Args:
        unit: what is counted, with a blank before it, such as " sentences".
        total: how many there are; None: unknown.
        done: how many of them an earlier attempt has finished.
        silent: show nothing.
    """
    bar = partial(tqdm, total=total, initial=done, unit=unit, disable=silent)
    if sys.stderr.isatty():
        return bar()
    return bar(
        file=_Lines(sys.stderr),
        mininterval=SECONDS_BETWEEN_LINES,
        maxinterval=SECONDS_BETWEEN_LINES,
        delay=SECONDS_BETWEEN_LINES,
        bar_format="{n_fmt}{unit}, {rate_fmt}" if total is None else _LINE,
    )


def counted(items: Iterable[T], unit: str) -> Iterator[T]:
    """Yield each item, and show how many have been yielded so far."""
    with progress(unit) as bar:
        for item in items:
            yield item
            bar.update()
