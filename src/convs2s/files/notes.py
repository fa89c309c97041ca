"""Small files in which the workflow notes something beside a result."""

import os
from pathlib import Path

from convs2s.errors import failed_use


def write_note(note: Path, text: str) -> None:
    """Write a note so that neither a killed process nor a power cut leaves an empty one.

    `atomic_path` is not used, because every job writes notes, and `atomic_path` needs shutil, which
    imports all compression modules and is slow to import.

    Raises:
        UserError: the note cannot be written.
    """
    partial = note.with_name(f"{note.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(note)
    except OSError as error:
        raise failed_use(error, "cannot be written", note) from None
