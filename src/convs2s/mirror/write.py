"""The miniature mirror, packed as the files are that the tasks download.

It is shipped as ``data/mirror.tar.xz``, in which archives are folders and nothing is compressed;
``tools/mirror`` has written that. No file holds a date: its bytes follow from its content alone.
"""

import bz2
import gzip
import hashlib
import io
import lzma
import re
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from convs2s.demo.corpus import shipped_data
from convs2s.download.download import CHECKSUM_LIST
from convs2s.files.atomic import atomic_path
from convs2s.files.text import write_lines

CONTENTS = Path(__file__).with_name("data") / "mirror.tar.xz"
CONTENTS_SHA256 = "df3c140001e3194c46c005abcde65d5c30e0a74c16811a13d81bafc34b0c5880"
"""SHA-256 of the tar archive."""

UNIX = 3
FILE_MODE = 0o644

Content = bytes | Mapping[str, bytes]
"""Of a file: its bytes before they are compressed, or those of an archive's members by name."""

_IN_ARCHIVE = re.compile(r"(.+?\.(?:tgz|tar|tar\.bz2|zip))/(.+)")


def write_mirror(folder: Path) -> None:
    """Write every file of the mirror as FOLDER/HOST/PATH, and their list of checksums last.

    The bytes are the same each time. A UserError says that the shipped data is damaged.
    """
    lines = []
    for place, content in sorted(contents().items()):
        data = packed(place, content)
        with atomic_path(folder / place) as path:
            path.write_bytes(data)
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {place}")
    write_lines(folder / CHECKSUM_LIST, lines)


def contents() -> dict[str, Content]:
    """Return what is in each file of the mirror, by HOST/PATH."""
    files: dict[str, bytes] = {}
    archives: dict[str, dict[str, bytes]] = {}
    with tarfile.open(fileobj=io.BytesIO(shipped_data(CONTENTS, CONTENTS_SHA256))) as tar:
        for member in tar:
            stream = tar.extractfile(member)
            assert stream is not None
            if inside := _IN_ARCHIVE.fullmatch(member.name):
                archives.setdefault(inside[1], {})[inside[2]] = stream.read()
            else:
                files[member.name] = stream.read()
    return {**files, **archives}


def packed(name: str, content: Content) -> bytes:
    """Return a file's bytes, packed and compressed as its name says."""
    if isinstance(content, Mapping):
        members = {member: packed(member, inner) for member, inner in content.items()}
        stream = io.BytesIO()
        if name.endswith(".zip"):
            with zipfile.ZipFile(stream, "w") as archive:
                for member, data in members.items():
                    entry = zipfile.ZipInfo(member)
                    entry.create_system = UNIX
                    entry.external_attr = FILE_MODE << 16
                    archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
        else:
            with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
                for member, data in members.items():
                    header = tarfile.TarInfo(member)
                    header.size = len(data)
                    header.mode = FILE_MODE
                    tar.addfile(header, io.BytesIO(data))
        content = stream.getvalue()
    if name.endswith((".gz", ".tgz")):
        return gzip.compress(content, mtime=0)
    if name.endswith(".bz2"):
        return bz2.compress(content)
    return lzma.compress(content) if name.endswith(".xz") else content
