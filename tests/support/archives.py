"""Archives and compressed files, whole and damaged, how they are read, and where files lie."""

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import zstandard

from convs2s.config.file_reference import parse_file_reference
from convs2s.download.archives import open_member

TEXT = "Ein Mann\u2028schläft .\nZwei Frauen lesen .\n".encode() * 50
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def flipped(content: bytes, bit: int) -> bytes:
    """Return bytes with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def noise(size: int) -> bytes:
    return random.Random(1).randbytes(size)


def make_archive(path: Path, members: Mapping[str, bytes], *odd: Any) -> Path:
    """Write a zip or tar archive, as the suffix says, of odd members and these ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = io.BytesIO()
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(plain, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry in odd:
                archive.writestr(entry, b"x")
            for name, data in members.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(fileobj=plain, mode="w") as tar:
            for header in odd:
                tar.addfile(header)
            for name, data in members.items():
                header = tarfile.TarInfo(name)
                header.size = len(data)
                tar.addfile(header, io.BytesIO(data))
    suffix = path.suffix.lower().replace(".t", ".")
    path.write_bytes(COMPRESS.get(suffix, bytes)(plain.getvalue()))
    return path


def read(path: Path, member: str | None = None) -> bytes:
    """Return what a file or member holds; whatever an archive says, nothing is written."""

    def around() -> list[Path]:
        return sorted([*path.parent.rglob("*"), *path.parents[1].iterdir()])

    before = around()
    try:
        with open_member(path, member) as stream:
            return stream.read()
    finally:
        assert around() == before


class FilesBelow(dict[str, Path]):
    """Locations with their files: what has a URL lies among the downloads of a folder."""

    def __init__(self, downloads: Path) -> None:
        super().__init__()
        self.downloads = downloads

    def __missing__(self, location: str) -> Path:
        return parse_file_reference(location).path(self.downloads)
