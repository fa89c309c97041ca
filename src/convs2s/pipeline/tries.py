"""Which tries of a job have failed, as a param that runs it again.

Snakemake writes down of a failed job what it writes of one that ended well, and removes its outputs
(9.27.1, docs/notes/2026-11-28-failed-jobs.md). A next run would find nothing out of date, and keep
what was made of the outputs before. So each job leaves a note beside its first output while it
runs, which a try that fails does not take away, and the note's text is among the job's params.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def note_beside(output: str | Path) -> Path:
    """Return the note of the tries that make an output."""
    return Path(output).with_name(f".{Path(output).name}.try")


def failed_tries(output: Sequence[str]) -> list[str]:
    """Return what stands in the note of a job's first output: nothing, where no try has failed."""
    note = note_beside(output[0])
    return [note.read_text("utf-8").strip()] if note.is_file() else []


@contextmanager
def noted_try(output: Sequence[str]) -> Iterator[None]:
    """Note a try that makes these outputs; if the block succeeds, the note is as it was.

    So the params that Snakemake writes down of a try that ended well are those of the next plan,
    and those of one that failed are not.
    """
    if not output:
        yield
        return
    note = note_beside(output[0])
    before = note.read_text("utf-8") if note.is_file() else None
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(f"{uuid.uuid4().hex}\n", "utf-8")
    yield
    if before is None:
        note.unlink(missing_ok=True)
    else:
        note.write_text(before, "utf-8")
