"""Archives and compressed files whose bytes follow from their content alone: no dates, no names."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Iterable, Mapping

_ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # the first that the format knows
_UNIX = 3
_FILE_MODE = 0o644


def text(lines: Iterable[str]) -> bytes:
    """Return lines as a file, each ended by a line feed."""
    return "".join(f"{line}\n" for line in lines).encode()


def packed_tar(members: Mapping[str, bytes]) -> bytes:
    """Return files as a tar archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), _FILE_MODE
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def packed_zip(members: Mapping[str, bytes]) -> bytes:
    """Return files as a zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name, _ZIP_DATE)
            member.create_system, member.external_attr = _UNIX, _FILE_MODE << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def gzipped(content: bytes) -> bytes:
    """Return bytes as gzip compresses them."""
    return gzip.compress(content, mtime=0)


def xz(content: bytes) -> bytes:
    """Return bytes as xz compresses them."""
    return lzma.compress(content)


def packed_tgz(members: Mapping[str, bytes]) -> bytes:
    """Return files as a tar archive that gzip compressed."""
    return gzipped(packed_tar(members))


def packed_tar_bz2(members: Mapping[str, bytes]) -> bytes:
    """Return files as a tar archive that bzip2 compressed."""
    return bz2.compress(packed_tar(members))
