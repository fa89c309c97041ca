"""How far a long piece of work is: a bar on a terminal, a line a minute in a log, or nothing."""

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Never, TextIO, TypeVar

from tqdm import tqdm

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 60.0  # in a log, where nobody watches a bar move
_LINE = "{n_fmt} of {total_fmt}{unit}, {rate_fmt}, {remaining} left"


class _Lines:
    """A stream to which each state of a bar is a line of its own."""

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
    """Return a bar on the standard error, or lines where that is no terminal.

    ``unit`` begins with a blank, such as " sentences"; an earlier try has ``done`` some of them.
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
    """Yield each item, and show how many there were."""
    with progress(unit) as bar:
        for item in items:
            yield item
            bar.update()
