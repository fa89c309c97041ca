"""Compute and check checksums, and note those of a job's outputs in files beside the outputs.

A table with a flipped bit is still a valid table, with a wrong number or word. Only a checksum
reveals this. Formats that contain a checksum need no note. A note also contains the path of its
file below the results folder. So a file that was copied over another file, together with its note,
is noticed.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.notes import write_note

# Suffixes of files whose checksum their readers check.
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
            f"{path}: damaged: its SHA-256 is not the one that was recorded when it was made; "
            "remove it and make it again"
        )


def record_path(download: Path) -> Path:
    """Return the path of the file ``NAME.sha256`` beside a download.

    It contains the SHA-256 of the first download of this file.
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
            f"{record}:1: expected a SHA-256 of 64 digits; delete the file to renew it"
        )
    return digits[0].decode()


def note_path(path: str | Path) -> Path:
    """Return the path of the note of a file, ``.NAME.sha256`` beside it.

    A note is one line, ``SHA256  PATH``, as the command sha256sum writes it.
    """
    path = Path(path)
    return path.with_name(f".{path.name}.sha256")


def note_checksums(paths: Iterable[str | Path], results: str | Path | None) -> None:
    """Write the notes of files.

    Files that do not exist, and files that their readers check, get none. The note of a file below
    the folder ``results`` contains its path relative to this folder, and any other note the name of
    the file.

    Raises:
        UserError: a note cannot be written.
    """
    root = None if results is None else Path(results).absolute()
    for path in map(Path, paths):
        if not has_note(path) or not path.is_file():
            continue
        place = path.absolute()
        name = path.name
        if root is not None and place.is_relative_to(root):
            name = str(place.relative_to(root))
        write_note(note_path(path), f"{sha256(path)}  {name}\n")


def forget_checksums(paths: Iterable[str | Path]) -> None:
    """Remove the notes of files that are about to be written again."""
    for path in paths:
        # If the note cannot be removed, the file cannot be written either, and that reports why.
        with suppress(OSError):
            note_path(path).unlink()


def check_noted(paths: Iterable[str | Path]) -> None:
    """Check files against their notes; a file without a note is not checked.

    Raises:
        UserError: a file has another path than its note, because it was copied here together with
            the note of another place, or it has another checksum. If the file is a link, either the
            path of the link or that of its target must be the noted one.
    """
    for path in map(Path, paths):
        check_noted_place(path)
        check_noted_content(path)


def check_noted_place(path: Path) -> None:
    """Raise a UserError if the note of a file, if it has one, is that of another path."""
    noted = _noted(path)
    if noted is None:
        return
    _, name = noted
    places = (path.absolute(), path.resolve())
    if not any(str(place).endswith(f"/{name}") for place in places):
        raise UserError(
            f"{path}: belongs to another place, as {note_path(path).name} beside it is the note of "
            f"{name}: remove the file, and the same command makes it again; if you have moved "
            "it on purpose, remove the note"
        )


def check_noted_content(path: Path) -> None:
    """Raise a UserError if a file does not have the SHA-256 in its note, if it has one."""
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
    """Return the SHA-256 and the path in the note of a file; None if there is nothing to check.

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
            f"and the same command makes them again; if {path.name} is right, remove the note alone"
        )
    return parts[1], parts[2]


def has_note(path: Path) -> bool:
    """Return whether a job notes the checksum of a file of this name.

    Others have a checksum within, which their readers check.
    """
    return not path.name.endswith(CHECKED_BY_READERS)
