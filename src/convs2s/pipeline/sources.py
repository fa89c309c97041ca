"""Which files a text was extracted from, noted beside it, as it outlives them.

Snakemake takes text for finished whose files are gone. That is right for as long as the task names
the same files; the text of others would be taken for theirs.
"""

import json
from collections.abc import Sequence
from pathlib import Path


def note_of_sources(output: str | Path) -> Path:
    """Return the note of the files behind a corpus file, of any side and stage."""
    file = Path(output)
    part_and_side, _, _ = file.name.partition(".zst")
    part, _, _ = part_and_side.rpartition(".")
    return file.parents[1] / f".{part}.sources"


def note_sources(output: str | Path, pairs: Sequence[Sequence[str]]) -> None:
    """Note from which pairs of files a corpus file was made."""
    note_of_sources(output).write_text(_content(pairs), "utf-8")


def has_sources(output: str | Path, pairs: Sequence[Sequence[str]]) -> bool:
    """Return whether a corpus file was made from these pairs, as far as anything is noted."""
    note = note_of_sources(output)
    return not note.is_file() or note.read_text("utf-8") == _content(pairs)


def _content(pairs: Sequence[Sequence[str]]) -> str:
    return f"{json.dumps([list(pair) for pair in pairs])}\n"
