"""Which tries of a job have failed, as a param that runs it again.

Snakemake writes down of a failed job what it writes of one that ended well, and removes its outputs
(9.27.1, docs/notes/2026-11-28-failed-jobs.md). A next run would find nothing out of date, and keep
what was made of the outputs before. So each job leaves a note beside its first output while it
runs, which a try that fails does not take away, and the note is among the job's params.
"""

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from convs2s.pipeline.living import RUN


def note_beside(output: str | Path) -> Path:
    """Return the note of the tries that make an output."""
    return Path(output).with_name(f".{Path(output).name}.try")


def failed_tries(output: Sequence[str]) -> list[str]:
    """Return what names the last failed try of a job with these outputs; nothing without one."""
    name = _read(note_beside(output[0])).get("try")
    return [name] if name else []


@contextmanager
def noted_try(output: Sequence[str]) -> Iterator[None]:
    """Note a try that makes these outputs; if the block succeeds, the note is as the plan saw it.

    So the params that Snakemake writes down of a try that ended well, which are those of its plan,
    are those of the next plan, and those of one that failed are not.
    """
    if not output:
        yield
        return
    note = note_beside(output[0])
    run = os.environ.get(RUN, "")
    before = _read(note)
    planned = before.get("try", "")
    if run and before.get("run") == run:
        # What a try of the same run has left, Snakemake did not see when it planned.
        planned = before.get("planned", "")
    note.parent.mkdir(parents=True, exist_ok=True)
    _write(note, {"try": uuid.uuid4().hex, "planned": planned, "run": run})
    yield
    if planned:
        _write(note, {"try": planned})
    else:
        note.unlink(missing_ok=True)


def _write(note: Path, fields: dict[str, str]) -> None:
    """Write a note at once: one that is empty, as the job died meanwhile, would say nothing."""
    partial = note.with_name(f"{note.name}.part")
    partial.write_text(json.dumps(fields), "utf-8")
    partial.replace(note)


def _read(note: Path) -> dict[str, str]:
    """Return a note's fields; none where there is no note, or a damaged one."""
    fields = None
    with suppress(FileNotFoundError, ValueError):
        fields = json.loads(note.read_text("utf-8"))
    return fields if isinstance(fields, dict) else {}
