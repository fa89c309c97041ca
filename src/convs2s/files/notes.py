"""Small files in which the workflow notes something beside a result."""

import os
from pathlib import Path

from convs2s.errors import failed_use


def write_note(note: Path, text: str) -> None:
    """Write a note; neither a kill of the process nor a power cut leaves an incomplete note.

    `atomic_path` is not used, because it needs shutil, which imports all compression modules. This
    would make the start of every job slower.

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
