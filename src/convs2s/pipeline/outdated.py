"""Which outputs are out of date by their own notes (`made`), and how Snakemake is told.

Snakemake's own records are not enough, for two reasons:

- Snakemake does not sync them, so a power cut may empty or remove them. It then regards the outputs
  as up to date, whatever the params of their rule are now.
- Snakemake compares the times of inputs with those of outputs. It does not notice an input that was
  replaced by an older file (``mv``, ``cp -p``, ``rsync -a``).

If a plan would make outputs from something else than their note says, the rule gets a further
input: a change file that is newer than the outputs (docs/decisions/0026).

Outputs without a note were made by an earlier version or on another machine. Snakemake's records
decide about them, and a warning names them. ``snakemake --touch`` writes the notes of existing
outputs, and so accepts the outputs as they are.

The folder of a change file is named after a digest of the output and of what it is to be made from.
As long as both stay the same, each plan finds the same file. So the set of inputs, which Snakemake
compares as well, does not change.
"""

import atexit
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from convs2s.files.atomic import atomic_path
from convs2s.pipeline.living import RUN
from convs2s.pipeline.made import (
    CHANGES,
    digest_of,
    note_of_origin,
    noted_origin,
    states_of,
)
from convs2s.pipeline.tries import is_unfinished

# The change files that this process has made. They are removed unless its run begins.
_made_by_plan: list[Path] = []

# The outputs without a note that this process has seen.
_without_note: list[str] = []


def params_of_job(
    stated: Iterable[tuple[str, object]],
    wildcards: object,
) -> dict[str, object]:
    """Return the params that a rule states for a job, each function called with its wildcards."""
    params = {}
    for name, value in stated:
        params[name] = value(wildcards) if callable(value) else value
    return params


def change_file(
    output: str,
    params: Mapping[str, object],
    own_files: Sequence[str],
    is_there: Callable[[str], bool] = os.path.exists,
) -> tuple[Path | None, bool]:
    """Return the change file of a job, and whether the job's outputs are out of date.

    If the outputs are out of date, the file is newer than they are. Otherwise the file is one that
    an earlier run needed, or None. With ``snakemake --touch``, existing outputs get a note first.
    Outputs without a note are named when this process ends.

    Args:
        output: the job's first output.
        params: the params of its rule.
        own_files: those of its inputs that a user provides.
        is_there: returns whether an output exists, here or in a storage.

    Raises:
        UserError: the file or the note cannot be written.
    """
    if _accepts_outputs(sys.argv[1:]) and is_there(output):
        _accept(output, params, own_files)
    digest = digest_of(params)
    states = states_of(own_files)
    name = f"{Path(output).name}.{digest_of([output, digest, states])}"
    # Each change file has a folder of its own: once Snakemake has listed a folder, it regards files
    # that are added later as missing.
    file = CHANGES / name / "changed"
    is_outdated = _is_outdated(output, digest, states)
    # Jobs plan, too, but only the run decides what is out of date.
    if is_outdated and RUN not in os.environ:
        _make_newer(file, note_of_origin(output))
    if not is_outdated and not note_of_origin(output).is_file() and is_there(output):
        _remember_without_note(output)
    existing_file = file if file.is_file() else None
    return existing_file, is_outdated


def _accepts_outputs(words: Sequence[str]) -> bool:
    """Return whether Snakemake's command line accepts outputs as they are, by ``--touch``."""
    plans_only = any(word == "-n" or word.startswith("--dry") for word in words)
    return not plans_only and any(word in ("-t", "--touch") for word in words)


def _accept(output: str, params: Mapping[str, object], inputs: Iterable[str]) -> None:
    """Note that a job's outputs, of which ``output`` is the first, are as they would be made now.

    Raises:
        UserError: the note cannot be written.
    """
    # The note of an output in a storage is beside its local copy, which need not be there.
    note_of_origin(output).parent.mkdir(parents=True, exist_ok=True)
    with noted_origin([output], params, inputs):
        pass


def _remember_without_note(output: str) -> None:
    """Remember that an output is there and has no note, for `name_without_note`."""
    # Jobs plan, too, but the run has named these outputs before.
    if RUN not in os.environ and output not in _without_note:
        _without_note.append(output)


@atexit.register
def name_without_note() -> None:
    """Name the outputs that still have no note when this process ends, in one line.

    If Snakemake has no records of them either, nothing shows whether they are up to date. To make
    them again may take days. So they are kept, and the line says how to decide.
    """
    found = [path for path in _without_note if not note_of_origin(path).is_file()]
    _without_note.clear()
    if found:
        others = len(found) - 1
        more = ""
        if others:
            more = f" and {others:,} other output{'s' if others > 1 else ''}"
        print(
            f"warning: {found[0]}{more}: no note of what they were made from, so only Snakemake's "
            "own records would tell that they are out of date; to take them as they are, run "
            "`snakemake --touch TARGETS`, to make them again `snakemake --forceall TARGETS` "
            "(docs/protection.md)",
            file=sys.stderr,
        )


def keep_changes() -> None:
    """Keep the change files that this process has made, because its run begins."""
    _made_by_plan.clear()


@atexit.register
def remove_changes() -> None:
    """Remove the change files that this process has made, unless its run has begun.

    So a command that only plans leaves none, and adds no input to later plans.
    """
    for file in _made_by_plan:
        shutil.rmtree(file.parent, ignore_errors=True)
    _made_by_plan.clear()


def _make_newer(file: Path, note: Path) -> None:
    """Write a change file, unless there is one that is newer than the note of the outputs.

    The existing file may be an input of a job that runs now, which would fail if the file changed.
    """
    is_new = not file.is_file()
    if is_new or (note.is_file() and file.stat().st_mtime <= note.stat().st_mtime):
        # The content is new as well, because Snakemake ignores the time of an input that has its
        # recorded content. Several plans may write the file at the same time.
        with atomic_path(file) as partial:
            partial.write_text(f"{time.time_ns()}\n", "utf-8")
    if is_new:
        _made_by_plan.append(file)


def _is_outdated(
    output: str, params_digest: str, states: Mapping[str, list[int]]
) -> bool:
    """Return whether the note of an output says that it was made from something else.

    A damaged note makes the outputs out of date, too. An input that is newer than the note is left
    to Snakemake, which may know that its content is the same.
    """
    note = note_of_origin(output)
    if not note.is_file():
        return is_unfinished(output)
    try:
        noted = json.loads(note.read_text("utf-8"))
        noted_digest = noted["params"]
        noted_states = noted["inputs"]
    except (ValueError, KeyError, TypeError):
        return True
    if noted_digest != params_digest:
        return True
    noted_at = note.stat().st_mtime_ns
    for path, state in states.items():
        modified = state[1]
        if modified <= noted_at and noted_states.get(path, state) != state:
            return True
    return False
