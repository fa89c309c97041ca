"""Notes of the files from which a text was extracted.

The note lies beside the text, because the files may be deleted after the extraction. Snakemake then
regards the text as finished. That is right as long as the task names the same files. If it names
other files, the note shows that the text was not extracted from them.

A note is ``corpus/.PART.sources``, a JSON list of pairs of files. PART is ``train``, ``valid`` or a
test set.
"""

import json
from collections.abc import Sequence
from pathlib import Path


def note_of_sources(output: str | Path) -> Path:
    """Return the path of the note for a corpus file.

    Both sides of a part, in all stages of its preparation, share the note: it is
    ``corpus/.train.sources`` for ``corpus/clean/train.source.zst``.
    """
    file = Path(output)
    part = file.name.partition(".zst")[0].rpartition(".")[0]
    return file.parents[1] / f".{part}.sources"


def note_sources(output: str | Path, pairs: Sequence[Sequence[str]]) -> None:
    """Note the pairs of files from which a corpus file was made."""
    note_of_sources(output).write_text(_content(pairs), "utf-8")


def has_sources(output: str | Path, pairs: Sequence[Sequence[str]]) -> bool:
    """Return whether a corpus file was made from these pairs of files; True if nothing is noted."""
    note = note_of_sources(output)
    return not note.is_file() or note.read_text("utf-8") == _content(pairs)


def _content(pairs: Sequence[Sequence[str]]) -> str:
    return f"{json.dumps([list(pair) for pair in pairs])}\n"
