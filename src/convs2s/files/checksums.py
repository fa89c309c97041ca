"""Compute and check checksums, and note those of a job's outputs in files beside the outputs.

A table with a flipped bit is still a valid table, but has a wrong number or word. Only a checksum
reveals this. Files of formats that contain a checksum get no note. A note also contains the path of
its file, relative to the results folder. This reveals a file that was copied over another file
together with its note.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.notes import write_note

# Suffixes of the formats that contain a checksum, which is checked when a file is read.
CHECKED_BY_READERS = (
    ".zst",
    ".gz",
    ".xz",
    ".bz2",
    ".tgz",
    ".zip",
    ".arrow",
    ".safetensors",
)


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_sha256(path: Path, recorded: str) -> None:
    """Raise a UserError if a file does not have the SHA-256 that was recorded when it was made."""
    if sha256(path) != recorded:
        raise UserError(
            f"{path}: damaged: its SHA-256 is not the one that was recorded when the file was "
            "made; remove the file and make it again"
        )


def record_path(download: Path) -> Path:
    """Return the path of the file ``NAME.sha256`` beside a download.

    This record contains the SHA-256 that the file had when it was downloaded for the first time.
    """
    return download.with_name(f"{download.name}.sha256")


def recorded_sha256(download: Path) -> str | None:
    """Return the SHA-256 that was recorded for a download, or None if there is no record.

    Raises:
        UserError: the record is damaged.
    """
    record = record_path(download)
    if not record.exists():
        return None
    digits = re.match(rb"[0-9a-f]{64}\b", record.read_bytes())
    if digits is None:
        raise UserError(
            f"{record}:1: expected a SHA-256 of 64 digits; delete this file to make it again"
        )
    return digits[0].decode()


def note_path(path: str | Path) -> Path:
    """Return the path of a file's note, which is ``.NAME.sha256`` beside the file.

    A note is one line, ``SHA256  PATH``, in the format of the command sha256sum.
    """
    path = Path(path)
    return path.with_name(f".{path.name}.sha256")


def note_checksums(paths: Iterable[str | Path], results: str | Path | None) -> None:
    """Write the notes of files.

    Files that do not exist, and files whose format contains a checksum, get no note. The note of a
    file below the folder ``results`` contains the path relative to this folder. The note of any
    other file contains its name.

    Raises:
        UserError: a note cannot be written.
    """
    root = None if results is None else Path(results).absolute()
    for path in map(Path, paths):
        if not has_note(path) or not path.is_file():
            continue
        absolute = path.absolute()
        noted = path.name
        if root is not None and absolute.is_relative_to(root):
            noted = str(absolute.relative_to(root))
        write_note(note_path(path), f"{sha256(path)}  {noted}\n")


def forget_checksums(paths: Iterable[str | Path]) -> None:
    """Remove the notes of files that are about to be written again."""
    for path in paths:
        # If the note cannot be removed, the file cannot be written, either. That error says why.
        with suppress(OSError):
            note_path(path).unlink()


def check_noted(paths: Iterable[str | Path]) -> None:
    """Check the paths and the checksums of files against their notes.

    A file without a note is not checked. For a link, the noted path may be the path of the link or
    that of its target.

    Raises:
        UserError: the path is not the noted one, because a file was copied here together with its
            note; or the checksum is not the noted one; or a note is damaged.
    """
    for path in map(Path, paths):
        check_noted_place(path)
        check_noted_content(path)


def check_noted_place(path: Path) -> None:
    """Raise a UserError if a file has the note of another path."""
    noted = _noted(path)
    if noted is None:
        return
    _, name = noted
    places = (path.absolute(), path.resolve())
    if not any(str(place).endswith(f"/{name}") for place in places):
        raise UserError(
            f"{path}: belongs to another place, because {note_path(path).name} beside it is the "
            f"note of {name}: remove the file, and the same command makes it again; if you have "
            "moved it on purpose, remove the note"
        )


def check_noted_content(path: Path) -> None:
    """Raise a UserError if a file has a note, but not the SHA-256 in this note."""
    noted = _noted(path)
    if noted is None:
        return
    digits, _ = noted
    if digits != sha256(path):
        raise UserError(
            f"{path}: its SHA-256 is not the one in {note_path(path).name} beside it, which was "
            "noted when the file was made: remove the file, and the same command makes it again; "
            "if you have changed it on purpose, remove the note"
        )


def _noted(path: Path) -> tuple[str, str] | None:
    """Return the SHA-256 and the path in the note of a file, or None if there is no note or file.

    Raises:
        UserError: the note is damaged.
    """
    note = note_path(path)
    if not (has_note(path) and path.is_file() and note.is_file()):
        return None
    line = os.fsdecode(note.read_bytes()).removesuffix("\n")
    parts = re.fullmatch("([0-9a-f]{64})  (.+)", line)
    if parts is None:
        raise UserError(
            f"{note}: damaged: expected a SHA-256 and the path of {path.name}: remove both files, "
            f"and the same command makes them again; if {path.name} is right, remove only the note"
        )
    return parts[1], parts[2]


def has_note(path: Path) -> bool:
    """Return whether a file of this name gets a note, because its format contains no checksum."""
    return not path.name.endswith(CHECKED_BY_READERS)
