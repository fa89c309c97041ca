"""Tries of a training that saved nothing: how many in a row, and how each ended.

A training of weeks is started again and again, by Snakemake or by the scheduler, as time limits and
nodes end it. Only the training itself knows whether a try was of use. The note lies beside the last
state, and holds for one run of the workflow: who has mended something starts a new one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter

from convs2s.errors import LastingError, UserError
from convs2s.files.text import write_json
from convs2s.pipeline.living import RUN
from convs2s.training.log import LOG_NAME

MOST_FRUITLESS = 3

NOTE = "tries.json"  # Name of the note, beside the states of one training

WITHOUT_A_WORD = "ended without a word: killed, or its machine went down"


@dataclass
class _Note:
    """The tries of a run since a state was saved."""

    run: str
    saved: int | None  # when the last state was written, in ns since 1970
    tries: list[str]  # when and where each began, and the line that it ended with
    is_lasting: bool = False  # whether every other try would end as the last one did


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
    note = _Note(run, _time_of(state), [])
    with suppress(OSError, ValueError):  # there is none, or a damaged one
        before = TypeAdapter(_Note).validate_json(path.read_bytes())
        if before.run == run and before.saved == note.saved:
            note = before
    _check(note, path)
    began = f"{datetime.now():%Y-%m-%d %H:%M}, {owner}"
    note.tries.append(f"{began}: {WITHOUT_A_WORD}")
    write_json(path, note)
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        note.tries[-1] = f"{began}: {line_of(error)}"
        note.is_lasting = isinstance(error, LastingError)
        if note.is_lasting:  # it is repeated whatever was saved before it
            note.saved = _time_of(state)
        with suppress(OSError, UserError):  # a full disk must not hide how it ended
            write_json(path, note)
        raise
    path.unlink()


def line_of(error: BaseException) -> str:
    """Return what a training ended with, in one line."""
    if isinstance(error, UserError):
        return str(error)
    # A fault of the program: by its class.
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def _check(note: _Note, path: Path) -> None:
    """Refuse another try where it would be in vain."""
    if note.is_lasting:
        reason = f"the last try of this run would only be repeated ({note.tries[-1]})"
    elif len(note.tries) >= MOST_FRUITLESS:
        log = path.parent.with_name(LOG_NAME)
        reason = f"{len(note.tries)} tries in a row of this run saved no state"
        reason += f" ({'; '.join(note.tries)}): see {log}"
    else:
        return
    raise UserError(
        f"{reason}; not tried again: run the same snakemake command again once the cause is "
        f"mended, or remove {path}"
    )


def _time_of(state: Path) -> int | None:
    """Return when a state was written, in ns since 1970; None where there is none."""
    return state.stat().st_mtime_ns if state.is_file() else None
