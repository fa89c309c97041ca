"""Archives: one named member as a stream of bytes; nothing is extracted, nothing is trusted.

Read are plain files, files compressed by gzip, bzip2, xz or Zstandard, and the members of tar
archives (plain or compressed so) and of zip archives; a compressed member is decompressed too. The
suffix says which. What no corpus would ever be, and what is damaged, is refused.
"""

import difflib
import io
import posixpath
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, BinaryIO, Self, TypeVar

from convs2s.errors import UserError, failures_of_file
from convs2s.files.compressed import (
    BUFFER_BYTES,
    decompressed,
    file_of,
    open_input,
    refuse_bomb,
)
from convs2s.files.limits import LARGEST_TAR_HEADER_BYTES, LARGEST_ZIP_LIST_BYTES, MOST_NAMES

_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA}
_ARCHIVE = re.compile(r"[^/]\.(tar(\.[^./]+)?|tgz|tbz2?|txz|zip)$")
_ABOUT_THE_NEXT = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}
_ZIP_END_BYTES = 22  # the end-of-central-directory record without its comment
_ENCRYPTED = 0x1
_DAMAGED = "truncated or damaged; fetch the file again"

Header = TypeVar("Header", tarfile.TarInfo, zipfile.ZipInfo)


@contextmanager
def open_member(path: str | Path, member: str | None = None) -> Iterator[BinaryIO]:
    """Open a file, or a named member of an archive, for reading its decompressed bytes once.

    A compressed stream is checked to its end as it is read; so is the rest of a tar archive when a
    reader that took the whole member leaves the block. ``member`` is None for anything that is not
    an archive. A UserError says that the file or the member is missing, or is no regular file; that
    the archive is damaged, truncated, followed by something else, holds a name that climbs out of
    its folder, a device, or a stream that grows absurdly; or that the disk fails.
    """
    path = Path(path)
    with open_input(path) as file:
        if not is_archive(path):
            if member is not None:
                raise UserError(f"{path}: not an archive, so it has no member {member!r}")
            yield decompressed(file, path.name, str(path))
            return
        if member is None:
            raise UserError(f"{path}: an archive: say which member to read, as in {path}#MEMBER")
        name = f"{path}#{member}"
        find = _zip_member if path.suffix.lower() == ".zip" else _tar_member
        with find(file, path, _safe_name(member, name)) as stream:
            yield decompressed(stream, member, name)


def is_archive(path: str | PurePath) -> bool:
    """Say whether the name is that of a tar or zip archive."""
    return bool(_ARCHIVE.search(str(path).lower()))


def _climbs(name: str) -> bool:
    """Say whether a member's name leads, on any system, out of the folder of the archive."""
    is_absolute = bool(re.match(r"[/\\]|[A-Za-z]:[/\\]", name))
    return is_absolute or ".." in re.split(r"[/\\]", name)


def _safe_name(name: str, where: str) -> str:
    """Return the name in its shortest form (./a//b is a/b)."""
    if _climbs(name):
        raise UserError(f"{where}: refused: the member name {name!r} leads out of the archive")
    return posixpath.normpath(name)


def _found(entries: Iterator[tuple[str, Header]], member: str, path: Path) -> Header:
    """Return the header of the first member of a name; a UserError says which names there are."""
    count = 0
    names: list[str] = []
    for name, entry in entries:
        if name == member:
            return entry
        count += 1
        # Of very many only some are kept, and those of the same name in another folder rather.
        is_alike = posixpath.basename(name) == posixpath.basename(member)
        if len(names) < (2 * MOST_NAMES if is_alike else MOST_NAMES):
            names.append(name[:MOST_NAMES])
    nearest = difflib.get_close_matches(member, names, n=3, cutoff=0) or ["nothing"]
    raise UserError(
        f"{path}: no member {member!r}; the nearest of its {count} are: {', '.join(nearest)}"
    )


def _refuse_another(entries: Iterator[tuple[str, Header]], member: str, path: Path) -> None:
    """Read the headers to the end of the archive; a UserError names a member that comes again."""
    if any(name == member for name, _ in entries):
        raise UserError(f"{path}: refused: it holds the member {member!r} more than once")


def _member_blocks(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield a member's bytes, with the libraries' errors translated while they are read."""
    with failures_of_file(name, _DAMAGED):
        while block := stream.read(BUFFER_BYTES):
            yield block


class _TarInfo(tarfile.TarInfo):
    """A header; what one says of the next is read whole, so it must be short."""

    @classmethod
    def frombuf(cls, block: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header; tarfile takes whatever is none for the end of the archive, zeros are."""
        try:
            return super().frombuf(block, encoding, errors)
        except tarfile.HeaderError:
            if block != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError("a damaged header, or its end mark is missing") from None
            raise

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        is_long = self.type in _ABOUT_THE_NEXT and self.size > LARGEST_TAR_HEADER_BYTES
        if is_long or self.size < 0:
            raise tarfile.ReadError(f"a header or a member of {self.size} bytes")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


def _tar_entries(archive: tarfile.TarFile, path: Path) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """Yield the name and header of each member; refuse the archive where one is hostile.

    Where all have been asked for, what follows the end of the archive is checked as well.
    """
    while True:
        with failures_of_file(str(path), _DAMAGED):
            entry = archive.next()
        if entry is None:
            break
        name = _safe_name(entry.name, str(path))
        folder = posixpath.dirname(name) if entry.issym() else ""
        if _climbs(posixpath.normpath(posixpath.join(folder, entry.linkname))):
            raise UserError(f"{path}: refused: its link {name!r} leads out of the archive")
        if entry.isdev() or entry.issparse():
            raise UserError(f"{path}: refused: its member {name!r} is a device or a sparse file")
        yield name, entry
    while data := archive.fileobj.read(BUFFER_BYTES):
        if data.strip(b"\0"):
            raise UserError(f"{path}: refused: garbage after its end")


@contextmanager
def _tar_member(file: BinaryIO, path: Path, member: str) -> Iterator[BinaryIO]:
    """Yield a member of a tar archive, reading forwards only."""
    content = decompressed(file, path.name, str(path))
    with failures_of_file(str(path), _DAMAGED):
        archive = tarfile.TarFile.open(
            fileobj=content, mode="r|", bufsize=BUFFER_BYTES, tarinfo=_TarInfo
        )
    entries = _tar_entries(archive, path)
    entry = _found(entries, member, path)
    stream = archive.extractfile(entry) if entry.isreg() else None
    if stream is None:
        raise UserError(f"{path}: refused: its member {member!r} is a link or a folder, not a file")
    reader = file_of(_member_blocks(stream, f"{path}#{member}"))
    yield reader
    is_read = not reader.read(1)
    if is_read:  # a reader who wanted the first lines only does not wait for the whole archive
        _refuse_another(entries, member, path)


def open_zip(file: BinaryIO, path: Path) -> zipfile.ZipFile:
    """Open a zip archive that is the whole of a file, whose name is ``path``.

    A UserError says that it is damaged, holds too many members, or is but a part of the file.
    """
    with failures_of_file(str(path), _DAMAGED):
        # zipfile reads the list of members whole.
        ending = zipfile._EndRecData(file)  # type: ignore[attr-defined]
        if ending and ending[zipfile._ECD_SIZE] > LARGEST_ZIP_LIST_BYTES:  # type: ignore[attr-defined]
            raise UserError(f"{path}: refused: its list of members is absurdly long")
        archive = zipfile.ZipFile(file)
    # zipfile passes over bytes before the first and after the last record: of two archives end to
    # end it reads the last one, and counts from the start of the file.
    first = min((entry.header_offset for entry in archive.infolist()), default=0)
    file.seek(-_ZIP_END_BYTES - len(archive.comment), io.SEEK_END)
    if first or file.read(4) != b"PK\5\6":
        raise UserError(f"{path}: refused: there is something before or after the zip archive")
    return archive


def _zip_entries(archive: zipfile.ZipFile, path: Path) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """Yield the name and header of each member; refuse the archive where one is hostile."""
    for entry in archive.infolist():
        name = _safe_name(entry.filename, str(path))
        file_type = stat.S_IFMT(entry.external_attr >> 16)  # of Unix; 0 where made elsewhere
        if file_type not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise UserError(f"{path}: refused: its member {name!r} is a link or a device")
        yield name, entry


@contextmanager
def _zip_member(file: BinaryIO, path: Path, member: str) -> Iterator[BinaryIO]:
    """Yield a member of a zip archive."""
    archive = open_zip(file, path)
    entries = _zip_entries(archive, path)
    entry = _found(entries, member, path)
    _refuse_another(entries, member, path)
    if entry.is_dir():
        raise UserError(f"{path}: refused: its member {member!r} is a folder, not a file")
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _ZIP_METHODS:
        raise UserError(
            f"{path}: its member {member!r} is encrypted, or compressed by another method than "
            "deflate, bzip2 and LZMA: pack it again"
        )
    refuse_bomb(entry.compress_size, entry.file_size, f"{path}#{member}")
    with failures_of_file(str(path), _DAMAGED):
        stream = archive.open(entry)
    yield file_of(_member_blocks(stream, f"{path}#{member}"))
