"""Count the tries of a training that saved no state, and refuse another try after three in a row.

Snakemake or the scheduler starts a long training again each time that a time limit or the failure
of a node ends it. Only the training itself knows whether a try made progress, that is, saved a
state. The count is kept in a note beside the last state. It holds for one run of the workflow: a
user who has fixed the cause starts a new run, which counts from 0.
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
"""After this many tries in a row without a saved state, no other try is made."""

NOTE = "tries.json"  # Name of the note, beside the states of one training

WITHOUT_A_WORD = "ended without a word: killed, or its machine went down"


@dataclass
class _Note:
    """The tries of one run of the workflow since the last state was saved."""

    run: str  # the run, as in the environment variable CONVS2S_RUN
    # When the last state was written, in ns since 1970; None: no state.
    saved: int | None
    # For each try: when it began, its process, and the line that it ended with.
    tries: list[str]
    # Whether the last try failed in a way that a new try would repeat.
    is_lasting: bool = False


@contextmanager
def counted(state: Path, owner: str) -> Iterator[None]:
    """Count the block as a try of a training.

    The try is written into the note before the block runs, because a process that is killed cannot
    write. If the block ends without an exception, the note is removed. Outside of a run of the
    workflow nothing is counted.

    Args:
        state: the file of the last state, which the block may write.
        owner: the name of this process.

    Raises:
        UserError: Three tries in a row of this run of the workflow saved no state, or the last try
            ended with a LastingError, which another try would repeat.
    """
    run = os.environ.get(RUN)
    if run is None:
        yield
        return
    path = state.with_name(NOTE)
    note = _Note(run, _time_of(state), [])
    with suppress(OSError, ValueError):  # the note is missing or damaged
        before = TypeAdapter(_Note).validate_json(path.read_bytes())
        # Go on counting only if this run has saved no state since.
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
        if note.is_lasting:
            # A new try would resume from the present state and fail again, even if this try saved
            # that state. With the time of that state, the note is valid for the next try.
            note.saved = _time_of(state)
        # An error of writing must not hide this error.
        with suppress(OSError, UserError):
            write_json(path, note)
        raise
    path.unlink(missing_ok=True)  # users may remove it, too


def line_of(error: BaseException) -> str:
    """Return the message of an error in one line; with its class, unless it is a UserError."""
    if isinstance(error, UserError):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def _check(note: _Note, path: Path) -> None:
    """Check that another try may succeed; ``path`` is the file of the note.

    Raises:
        UserError: Another try would fail like the last one, or too many tries in a row saved no
            state.
    """
    if note.is_lasting:
        reason = f"the last try of this run would only be repeated ({note.tries[-1]})"
    elif len(note.tries) >= MOST_FRUITLESS:
        kept_log = path.parent.with_name(LOG_NAME)
        reason = f"{len(note.tries)} tries in a row of this run saved no state"
        reason += f" ({'; '.join(note.tries)}): see {kept_log}"
    else:
        return
    raise UserError(
        f"{reason}; not tried again: fix the cause and run the same snakemake command again, or "
        f"remove {path}"
    )


def _time_of(state: Path) -> int | None:
    """Return when a state was written, in ns since 1970; None if there is no state."""
    return state.stat().st_mtime_ns if state.is_file() else None
