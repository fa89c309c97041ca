"""Checksums of files, and the notes of them that jobs leave beside what they have written.

A flipped bit leaves a table a table, with another number or word in it, and only a checksum tells.
Files whose format has one of its own, or whose checksum stands in another file, need no note. A
note names its file by the path below the results, so that a copy is not taken for another file.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from convs2s.errors import UserError

CHECKED_BY_READERS = (".zst", ".gz", ".xz", ".bz2", ".tgz", ".zip", ".arrow", ".safetensors")


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_sha256(path: Path, recorded: str) -> None:
    """Raise a UserError for a file without the checksum that was recorded when it was made."""
    if sha256(path) != recorded:
        raise UserError(
            f"{path}: damaged: its SHA-256 is not the one that was recorded when it was made; "
            "remove it and make it again"
        )


def record_path(download: Path) -> Path:
    """Return the file beside a download that the checksum of its first one is recorded in."""
    return download.with_name(f"{download.name}.sha256")


def recorded_sha256(download: Path) -> str | None:
    """Return the checksum that was recorded of a download; a UserError names a damaged record."""
    record = record_path(download)
    if not record.exists():
        return None
    digits = re.match(rb"[0-9a-f]{64}\b", record.read_bytes())
    if digits is None:
        raise UserError(f"{record}:1: expected a SHA-256 of 64 digits; delete the file to renew it")
    return digits[0].decode()


def note_path(path: str | Path) -> Path:
    """Return the file beside another that its checksum is noted in."""
    path = Path(path)
    return path.with_name(f".{path.name}.sha256")


def note_checksums(paths: Iterable[str | Path], results: str | Path | None) -> None:
    """Note the checksums of files that are there and that no reader checks otherwise.

    Files below ``results`` are noted by their paths from there, others by their names.
    """
    root = None if results is None else Path(results).absolute()
    for path in _files_to_note(paths):
        place = path.absolute()
        name = path.name
        if root is not None and place.is_relative_to(root):
            name = str(place.relative_to(root))
        note = note_path(path)
        # No atomic_path: every job imports this module, and compression is slow to import.
        partial = note.with_name(f"{note.name}.partial")
        try:
            partial.write_text(f"{sha256(path)}  {name}\n", encoding="utf-8")
            with partial.open("rb") as written:
                os.fsync(written.fileno())  # else a power cut may leave it empty
            partial.replace(note)
        except OSError as error:
            raise UserError(
                f"{note}: cannot be written: {error.strerror}; make room or name another place, "
                "then run the same command again"
            ) from None


def forget_checksums(paths: Iterable[str | Path]) -> None:
    """Remove the notes of files that are about to be written again."""
    for path in paths:
        with suppress(OSError):  # the write itself says what is wrong with the place
            note_path(path).unlink()


def check_noted(paths: Iterable[str | Path]) -> None:
    """Raise a UserError for a file that is not what was noted; without a note it is taken as is.

    Nor may it be another file, which was copied here with its note: the path, or that of what it is
    a link to, ends with the noted one.
    """
    for path in _files_to_note(paths):
        note = note_path(path)
        if not note.is_file():
            continue
        digits, _, name = os.fsdecode(note.read_bytes()).removesuffix("\n").partition("  ")
        places = (path.absolute(), path.resolve())
        if not any(str(place).endswith(f"/{name}") for place in places):
            raise UserError(
                f"{path}: is the file of another place: {note.name} beside it notes {name}: remove "
                "the file, and the same command makes it again; where you have moved it on "
                "purpose, remove the note"
            )
        if digits != sha256(path):
            raise UserError(
                f"{path}: its SHA-256 is not the one that {note.name} beside it noted when it was "
                "made: remove the file, and the same command makes it again; where you have "
                "changed it on purpose, remove the note"
            )


def _files_to_note(paths: Iterable[str | Path]) -> Iterable[Path]:
    for path in map(Path, paths):
        if not path.name.endswith(CHECKED_BY_READERS) and path.is_file():
            yield path
