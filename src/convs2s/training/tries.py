"""Tries of a training that saved nothing: how many in a row, and how each ended.

A training of weeks is started again and again, by Snakemake or by the scheduler, as time limits and
nodes end it. Only the training itself knows whether a try was of use. The note lies beside the last
state, and holds for one run of the workflow: who has mended something starts a new one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from convs2s.errors import LastingError, UserError
from convs2s.files.text import read_json, write_json
from convs2s.pipeline.living import RUN
from convs2s.training.log import LOG_NAME

MOST_FRUITLESS = 3

NOTE = "tries.json"  # Name of the note, beside the states of one training

WITHOUT_A_WORD = "ended without a word: killed, or its machine went down"


@dataclass(frozen=True)
class _Try:
    """One try: when and where it began, and the line that it ended with."""

    began: str
    ended: str = WITHOUT_A_WORD
    is_lasting: bool = False  # whether every other try would end likewise

    def __str__(self) -> str:
        return f"{self.began}: {self.ended}"


@dataclass(frozen=True)
class _Note:
    """The tries of a run since a state was saved."""

    run: str
    saved: int | None  # when the last state was written, in ns since 1970
    tries: tuple[_Try, ...] = ()


@contextmanager
def counted(state: Path, owner: str) -> Iterator[None]:
    """Count the block as a try of a training with this last state, which it replaces.

    It is noted before it begins, as what is killed notes nothing. Outside of a run nothing is
    counted.

    Raises:
        UserError: Three tries in a row of this run of the workflow saved no state, or the last one
            ended with what every other one would end with.
    """
    run = os.environ.get(RUN)
    if run is None:
        yield
        return
    path = state.with_name(NOTE)
    note = _Note(run, _time_of(state))
    before = _read(path)
    if before is not None and before.run == note.run and before.saved == note.saved:
        note = before
    _check(note.tries, path)
    this = _Try(f"{datetime.now():%Y-%m-%d %H:%M}, {owner}")
    write_json(path, replace(note, tries=(*note.tries, this)))
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        is_lasting = isinstance(error, LastingError)
        this = replace(this, ended=line_of(error), is_lasting=is_lasting)
        # What lasts is repeated whatever was saved before it; else a new state makes the note void.
        saved = _time_of(state) if is_lasting else note.saved
        ended = replace(note, saved=saved, tries=(*note.tries, this))
        with suppress(OSError, UserError):  # a full disk must not hide how it ended
            write_json(path, ended)
        raise
    path.unlink()


def line_of(error: BaseException) -> str:
    """Return what a training ended with, in one line."""
    if isinstance(error, UserError):
        return str(error)
    # A fault of the program: by its class.
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def _check(tries: tuple[_Try, ...], path: Path) -> None:
    """Refuse another try where it would be in vain."""
    advice = f"run the same snakemake command again once the cause is mended, or remove {path}"
    if tries and tries[-1].is_lasting:
        raise UserError(
            f"the last try of this run would only be repeated ({tries[-1]}); not tried again: "
            f"{advice}"
        )
    if len(tries) >= MOST_FRUITLESS:
        raise UserError(
            f"{len(tries)} tries in a row of this run saved no state ({'; '.join(map(str, tries))})"
            f"; not tried again: see {path.parent.with_name(LOG_NAME)}; {advice}"
        )


def _time_of(state: Path) -> int | None:
    """Return when a state was written, in ns since 1970; None where there is none."""
    with suppress(FileNotFoundError):
        return state.stat().st_mtime_ns
    return None


def _read(path: Path) -> _Note | None:
    """Return the note; None where there is none, or a damaged one."""
    with suppress(UserError, TypeError, KeyError):
        fields: Any = read_json(path)
        tries = tuple(_Try(**one) for one in fields["tries"])
        return _Note(fields["run"], fields["saved"], tries)
    return None
