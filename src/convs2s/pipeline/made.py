"""Notes of what outputs were made from, by which a plan finds what is out of date (`outdated`).

The note of ``FOLDER/NAME`` is ``FOLDER/.NAME.made``, a JSON object with these keys:

- ``params``: a digest of the rule's params.
- ``inputs``: path -> size in bytes and time of the last modification in nanoseconds of each input.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from convs2s.files.notes import write_note
from convs2s.pipeline.living import FOLDER

CHANGES = FOLDER / "changes"
"""Folder of the change files, by which a plan tells Snakemake what is out of date."""


def note_of_origin(output: str | Path) -> Path:
    """Return the path of the note of what a job's first output was made from."""
    return Path(output).with_name(f".{Path(output).name}.made")


@contextmanager
def noted_origin(
    outputs: Sequence[str],
    params: Mapping[str, object],
    inputs: Iterable[str],
) -> Iterator[None]:
    """Run the block as a job; if it succeeds, note what its outputs were made from.

    ``inputs`` are noted as they are before the block. So an input that changes meanwhile makes the
    outputs out of date.

    Raises:
        UserError: the note cannot be written.
    """
    origin = {"params": digest_of(params), "inputs": states_of(inputs)}
    yield
    if outputs:
        write_note(note_of_origin(outputs[0]), json.dumps(origin))


def without_changes(inputs: Iterable[str]) -> list[str]:
    """Return a job's inputs without change files, which only plans need."""
    return [path for path in inputs if not Path(path).is_relative_to(CHANGES)]


def states_of(paths: Iterable[str]) -> dict[str, list[int]]:
    """Return [size in bytes, time in nanoseconds] of each file that exists, by its path.

    For a link, they are those of its target.
    """
    states = {}
    for path in paths:
        with suppress(FileNotFoundError):
            found = Path(path).stat()
            states[path] = [found.st_size, found.st_mtime_ns]
    return states


def digest_of(value: object) -> str:
    """Return a digest of a value that JSON can express."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
