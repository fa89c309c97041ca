"""Write the miniature mirror, with every file packed as in the original download.

The mirror is shipped as ``data/mirror.tar.xz``, which ``tools/mirror`` has written. In that file,
archives are folders and no file is compressed. The written files have no dates, so that their bytes
depend on their contents only.
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
from convs2s.files.atomic import atomic_path, sync_folder
from convs2s.files.text import write_lines

CONTENTS = Path(__file__).with_name("data") / "mirror.tar.xz"
CONTENTS_SHA256 = "df3c140001e3194c46c005abcde65d5c30e0a74c16811a13d81bafc34b0c5880"
"""SHA-256 of the decompressed tar archive."""

FILE_MODE = 0o644

Content = bytes | Mapping[str, bytes]
"""The bytes of a file before compression; for an archive, name of a member -> its bytes."""

_IN_ARCHIVE = re.compile(r"(.+?\.(?:tgz|tar|tar\.bz2|zip))/(.+)")


def write_mirror(folder: Path) -> None:
    """Write every file of the mirror as FOLDER/HOST/PATH, and then the list of their checksums.

    Every call writes the same bytes.

    Raises:
        UserError: the shipped data is damaged.
    """
    lines = []
    for name, content in sorted(contents().items()):
        data = packed(name, content)
        with atomic_path(folder / name) as path:
            path.write_bytes(data)
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {name}")
    # After a power cut, the list must not name a file that is lost.
    sync_folder(folder)
    write_lines(folder / CHECKSUM_LIST, lines)


def contents() -> dict[str, Content]:
    """Read the shipped data; return HOST/PATH of each file of the mirror -> its content."""
    files: dict[str, bytes] = {}
    archives: dict[str, dict[str, bytes]] = {}
    with tarfile.open(
        fileobj=io.BytesIO(shipped_data(CONTENTS, CONTENTS_SHA256))
    ) as tar:
        for member in tar:
            stream = tar.extractfile(member)
            assert stream is not None  # the archive has files only
            in_archive = _IN_ARCHIVE.fullmatch(member.name)
            if in_archive:
                archive_name, member_name = in_archive.groups()
                archives.setdefault(archive_name, {})[member_name] = stream.read()
            else:
                files[member.name] = stream.read()
    return {**files, **archives}


def packed(name: str, content: Content) -> bytes:
    """Return the bytes of a file, packed and compressed according to the suffix of its name.

    The members of an archive may be compressed too, so each of them is packed first.
    """
    if isinstance(content, Mapping):
        members = {member: packed(member, data) for member, data in content.items()}
        stream = io.BytesIO()
        if name.endswith(".zip"):
            with zipfile.ZipFile(stream, "w") as archive:
                for member, data in members.items():
                    entry = zipfile.ZipInfo(member)
                    # The upper 16 bits are Unix permissions.
                    entry.external_attr = FILE_MODE << 16
                    archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
        else:
            with tarfile.open(
                fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT
            ) as tar:
                for member, data in members.items():
                    header = tarfile.TarInfo(member)
                    header.size = len(data)
                    tar.addfile(header, io.BytesIO(data))
        content = stream.getvalue()
    if name.endswith((".gz", ".tgz")):
        return gzip.compress(content, mtime=0)
    if name.endswith(".bz2"):
        return bz2.compress(content)
    return lzma.compress(content) if name.endswith(".xz") else content
