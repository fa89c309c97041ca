"""Notes of failed tries, which are a param of each rule and so make Snakemake run a job again.

Snakemake 9.27.1 records the params of a failed job as if it had succeeded, and removes its outputs
(docs/notes/2026-11-28-failed-jobs.md). The next run would find nothing out of date, and keep the
files that were made from the earlier outputs. Therefore each job writes a note beside its first
output when it starts, and puts the note back as it was when it succeeds. The note of a failed try
stays. It is among the job's params, so these then differ from the recorded ones.

The note of ``FOLDER/NAME`` is ``FOLDER/.NAME.try``, a JSON object with these keys:

- ``try``: a random name of the try that failed, or that runs now.
- ``planned``: the ``try`` that was noted when Snakemake planned the run; empty without a note.
- ``run``: the run of the workflow (``living.RUN``) in which the try began.

The last two are there only while a job runs or after it has failed.
"""

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from convs2s.files.notes import write_note
from convs2s.pipeline.living import RUN


def note_beside(output: str | Path) -> Path:
    """Return the path of the note about the tries to make an output."""
    return Path(output).with_name(f".{Path(output).name}.try")


def failed_try(output: str) -> str:
    """Return the name of the last try of a job that had failed when Snakemake planned the run.

    ``output`` is the job's first output. The name is empty if no try had failed since the last
    success.
    """
    fields = _read(note_beside(output))
    # In a note of this run, ``try`` is a try that began after Snakemake had planned.
    return fields.get("planned" if _is_of_this_run(fields) else "try", "")


def is_unfinished(output: str) -> bool:
    """Return whether the last try of a job of an earlier run has not ended well.

    ``output`` is the job's first output.
    """
    fields = _read(note_beside(output))
    return "planned" in fields and not _is_of_this_run(fields)


@contextmanager
def noted_try(output: Sequence[str]) -> Iterator[None]:
    """Run the block as a try to make these outputs, and note the try beside the first output.

    If the block succeeds, the note is again what it was when Snakemake planned the run. The params
    that Snakemake then records are those of its plan, so the next plan finds the same ones. If the
    block fails, the note stays, and the next plan finds other params than the recorded ones.
    """
    if not output:
        yield
        return
    note = note_beside(output[0])
    planned = failed_try(output[0])
    note.parent.mkdir(parents=True, exist_ok=True)
    running = {
        "try": uuid.uuid4().hex,
        "planned": planned,
        "run": os.environ.get(RUN, ""),
    }
    write_note(note, json.dumps(running))
    yield
    if planned:
        write_note(note, json.dumps({"try": planned}))
    else:
        note.unlink(missing_ok=True)


def _is_of_this_run(fields: dict[str, str]) -> bool:
    """Return whether a try began in this run, after Snakemake had planned it."""
    run = os.environ.get(RUN, "")
    return bool(run) and fields.get("run") == run


def _read(note: Path) -> dict[str, str]:
    """Return the fields of a note; an empty dict if the note does not exist or is damaged."""
    fields = None
    with suppress(FileNotFoundError, ValueError):
        fields = json.loads(note.read_text("utf-8"))
    return fields if isinstance(fields, dict) else {}
