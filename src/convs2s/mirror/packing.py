"""Files, compressed and in archives, whose bytes follow from their content alone: no dates."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Mapping

FIRST_ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # the first that the format knows
UNIX = 3
FILE_MODE = 0o644

Content = bytes | list[str] | Mapping[str, "Content"]
"""Of a file: its bytes before they are compressed, its lines, or an archive's members by name."""


def packed(name: str, content: Content) -> bytes:
    """Return a file's bytes, packed and compressed as its name says."""
    if isinstance(content, Mapping):
        members = {member: packed(member, inner) for member, inner in content.items()}
        content = packed_zip(members) if name.endswith(".zip") else packed_tar(members)
    elif isinstance(content, list):
        content = "".join(f"{line}\n" for line in content).encode()
    if name.endswith((".gz", ".tgz")):
        return gzip.compress(content, mtime=0)
    if name.endswith(".bz2"):
        return bz2.compress(content)
    return lzma.compress(content) if name.endswith(".xz") else content


def packed_tar(members: Mapping[str, bytes]) -> bytes:
    """Return files as a tar archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), FILE_MODE
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def packed_zip(members: Mapping[str, bytes]) -> bytes:
    """Return files as a zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name, FIRST_ZIP_DATE)
            member.create_system, member.external_attr = UNIX, FILE_MODE << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()
