"""Read one named member of an archive as a stream of bytes.

Nothing is extracted to disk. Archives are not trusted: an archive is refused if it is damaged, or
if it has contents that no corpus has, such as devices or names that lead out of the archive.

The suffix of a file's name tells its format: a plain file, a file compressed by gzip, bzip2, xz or
Zstandard, a tar archive (uncompressed or compressed by one of these) or a zip archive. A compressed
member is decompressed as well.
"""

import difflib
import io
import posixpath
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import IO, BinaryIO, Self, cast

from convs2s.errors import UserError, failures_of_file
from convs2s.files.compressed import (
    BUFFER_BYTES,
    compression_of,
    decompressed,
    file_of,
    open_input,
    refuse_bomb,
)
from convs2s.files.limits import (
    LARGEST_TAR_HEADER_BYTES,
    LARGEST_ZIP_LIST_BYTES,
    MOST_NAMES,
)

_ARCHIVE = re.compile(r"[^/]\.(tar(\.[^./]+)?|tgz|tbz2?|txz|zip)$")
# Types of tar headers that describe the following header, such as its long name.
_ABOUT_THE_NEXT = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}
# Size of a zip archive's end-of-central-directory record without its comment.
_ZIP_END_BYTES = 22
# Maximum number of characters of a member's name that are compared with another name.
_COMPARED_CHARACTERS = 1_000
_DAMAGED = "truncated or damaged; fetch the file again"

Open = Callable[[], IO[bytes]]
Entry = tuple[str, Open | None]
"""The normalized name of a member, and the function that opens it (None: a link or a folder)."""


@contextmanager
def open_member(path: str | Path, member: str | None = None) -> Iterator[BinaryIO]:
    """Open a file, or a named member of an archive, to read its decompressed bytes once.

    ``member`` is None for a file that is not an archive. A compressed stream is checked while it is
    read. If the caller has read a member of a tar archive to its end, the rest of the archive is
    checked when the block ends.

    Raises:
        UserError: the file or the member is missing or not a regular file, the disk fails, or the
            archive is refused. An archive is refused if it is damaged, truncated or followed by
            other data, or if it contains a name that leads out of it, a device, the same member
            twice, or data that grow too much when they are decompressed. Reading from the stream
            raises these errors as well.
    """
    path = Path(path)
    with open_input(path) as file:
        if not is_archive(path):
            if member is not None:
                raise UserError(
                    f"{path}: not an archive, so it has no member {member!r}"
                )
            yield decompressed(file, path.name, str(path))
            return
        if member is None:
            raise UserError(
                f"{path}: an archive: name the member to read, as in {path}#MEMBER"
            )
        name = f"{path}#{member}"
        member_name = _safe_name(member, name)
        entries = _entries(file, path)
        open_entry = _find(entries, member_name, path)
        if open_entry is None:
            raise UserError(
                f"{path}: refused: its member {member_name!r} is a link or a folder, not a file"
            )
        reader = file_of(_member_blocks(open_entry, name))
        yield decompressed(reader, member, name)
        # The rest of the archive is checked only if the member was read to its end. A caller who
        # needed only the first lines does not wait for this.
        is_read_to_end = not reader.read(1)
        # This search for the same name reads, and so checks, all further members.
        if is_read_to_end and any(name == member_name for name, _ in entries):
            raise UserError(
                f"{path}: refused: it holds the member {member_name!r} more than once"
            )


def member_names(path: str | Path) -> list[str]:
    """Return the names of the files in an archive, in their order and without its folders.

    Raises:
        UserError: the archive is damaged or refused, as by `open_member`, or has more than
            ``MOST_NAMES`` files.
    """
    path = Path(path)
    names = []
    with open_input(path) as file:
        for name, open_entry in _entries(file, path):
            if open_entry is not None:
                names.append(name)
            if len(names) > MOST_NAMES:
                raise UserError(
                    f"{path}: has more than {MOST_NAMES} files: name the member to read, as in "
                    f"{path}#MEMBER"
                )
    return names


def is_archive(path: str | PurePath) -> bool:
    """Return whether the suffix of a name is that of a tar or zip archive."""
    return bool(_ARCHIVE.search(str(path).lower()))


def shows_its_end(name: str) -> bool:
    """Return whether a file of this name is compressed or an archive, so that it shows a cut."""
    return compression_of(name) is not None or is_archive(name)


def check_whole(path: Path, name: str) -> None:
    """Read a compressed file or an archive to its end. The suffix of ``name`` tells its format.

    Raises:
        UserError: the file is truncated, damaged or of another format, is compressed twice, or is
            refused as by `open_member`. The message begins with ``name``.
    """
    with open_input(path) as file:
        if is_archive(name):
            for member, open_entry in _entries(file, Path(name)):
                if open_entry is not None:
                    for _ in _member_blocks(open_entry, f"{name}#{member}"):
                        pass
            return
        compression = compression_of(name)
        if compression is None:
            return
        content = decompressed(file, name, name)
        if content.read(len(compression.start)) == compression.start:
            raise UserError(
                f"{name}: compressed by {compression.name} twice: decompress it once"
            )
        while content.read(BUFFER_BYTES):
            pass


def _leads_out(name: str) -> bool:
    """Return whether a member's name leads out of the archive's folder, on any operating system."""
    is_absolute = bool(re.match(r"[/\\]|[A-Za-z]:[/\\]", name))
    return is_absolute or ".." in re.split(r"[/\\]", name)


def _safe_name(name: str, where: str) -> str:
    """Return a member's name in its normalized form: ./a//b becomes a/b.

    Raises:
        UserError: the name leads out of the archive. The message begins with ``where``.
    """
    if _leads_out(name):
        raise UserError(
            f"{where}: refused: the member name {name!r} leads out of the archive"
        )
    return posixpath.normpath(name)


def _find(entries: Iterable[Entry], member: str, path: Path) -> Open | None:
    """Return the function that opens the first member of this name. No later member is read.

    Raises:
        UserError: there is no such member. The message gives the most similar names.
    """
    count = 0
    names: list[str] = []
    for name, open_entry in entries:
        if name == member:
            return open_entry
        count += 1
        # Keep names to search for similar ones: any names up to MOST_NAMES, and then up to as many
        # more that have the same base name in another folder.
        has_same_base = posixpath.basename(name) == posixpath.basename(member)
        most = 2 * MOST_NAMES if has_same_base else MOST_NAMES
        if len(names) < most:
            names.append(name[:_COMPARED_CHARACTERS])
    nearest = difflib.get_close_matches(member, names, n=3, cutoff=0) or ["nothing"]
    raise UserError(
        f"{path}: no member {member!r}; the nearest of its {count} are: {', '.join(nearest)}"
    )


def _member_blocks(open_entry: Open, name: str) -> Iterator[bytes]:
    """Yield a member's bytes in blocks; errors of the libraries become UserErrors."""
    with failures_of_file(name, _DAMAGED):
        stream = open_entry()
        while block := stream.read(BUFFER_BYTES):
            yield block


def _entries(file: BinaryIO, path: Path) -> Iterator[Entry]:
    """Return the members of an archive. ``path`` is the name of the open file.

    Raises:
        UserError: the archive is damaged, or is refused because of a member (see `open_member`).
    """
    if path.suffix.lower() == ".zip":
        return _zip_entries(file, path)
    return _tar_entries(file, path)


class _TarInfo(tarfile.TarInfo):
    """A header of a tar archive, which is checked more strictly than by tarfile."""

    @classmethod
    def frombuf(
        cls,
        block: bytes | bytearray,
        encoding: str,
        errors: str,
    ) -> Self:
        """Read a header from a block.

        tarfile raises the same HeaderError for a block of zeros and for a damaged header, and takes
        both for the end of the archive. Here only a block of zeros is the end. tarfile also reads a
        header about the next header into memory whole, so its size is limited here.
        """
        try:
            header = super().frombuf(block, encoding, errors)
        except tarfile.HeaderError:
            if block != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError(
                    "a damaged header, or its end mark is missing"
                ) from None
            raise
        is_long = header.size > LARGEST_TAR_HEADER_BYTES
        if header.size < 0 or (is_long and header.type in _ABOUT_THE_NEXT):
            raise tarfile.ReadError(f"a header or a member of {header.size} bytes")
        return header


def _tar_entries(file: BinaryIO, path: Path) -> Iterator[Entry]:
    """Yield the members of a tar archive, which is read forwards only.

    After the last member, the data after the end of the archive are checked: all must be zeros.
    """
    content = decompressed(file, path.name, str(path))
    with failures_of_file(str(path), _DAMAGED):
        archive = tarfile.TarFile.open(
            fileobj=content, mode="r|", bufsize=BUFFER_BYTES, tarinfo=_TarInfo
        )
    while True:
        with failures_of_file(str(path), _DAMAGED):
            entry = archive.next()
        if entry is None:
            break
        name = _safe_name(entry.name, str(path))
        # The target of a symbolic link is relative to the link's folder, and that of a hard link to
        # the archive. The linkname of any other member is empty.
        folder = posixpath.dirname(name) if entry.issym() else ""
        link_target = posixpath.normpath(posixpath.join(folder, entry.linkname))
        if _leads_out(link_target):
            raise UserError(
                f"{path}: refused: its link {name!r} leads out of the archive"
            )
        if entry.isdev() or entry.issparse():
            raise UserError(
                f"{path}: refused: its member {name!r} is a device or a sparse file"
            )
        open_entry = cast(Open, partial(archive.extractfile, entry))
        yield name, open_entry if entry.isreg() else None
    while data := archive.fileobj.read(BUFFER_BYTES):
        if data.strip(b"\0"):
            raise UserError(f"{path}: refused: garbage after its end")


def open_zip(file: BinaryIO, path: Path) -> zipfile.ZipFile:
    """Open a zip archive. ``path`` is the name of the open file.

    Raises:
        UserError: the archive is damaged, has too many members, or is only a part of the file.
    """
    with failures_of_file(str(path), _DAMAGED):
        # zipfile reads the list of members into memory whole, so its size is checked first.
        ending = zipfile._EndRecData(file)  # type: ignore[attr-defined]
        if ending and ending[zipfile._ECD_SIZE] > LARGEST_ZIP_LIST_BYTES:  # type: ignore[attr-defined]
            raise UserError(f"{path}: refused: its list of members is absurdly long")
        archive = zipfile.ZipFile(file)
    # zipfile ignores bytes before the first record and after the last one. If a file contains two
    # archives end to end, it reads the second one, with offsets from the start of the file.
    start = min((entry.header_offset for entry in archive.infolist()), default=0)
    file.seek(-_ZIP_END_BYTES - len(archive.comment), io.SEEK_END)
    ends_with_record = file.read(4) == b"PK\5\6"  # the signature of the end record
    if start or not ends_with_record:
        raise UserError(
            f"{path}: refused: there is something before or after the zip archive"
        )
    return archive


def _zip_entries(file: BinaryIO, path: Path) -> Iterator[Entry]:
    """Yield the members of a zip archive."""
    archive = open_zip(file, path)
    entries = archive.infolist()
    compressed_bytes = sum(entry.compress_size for entry in entries)
    refuse_bomb(compressed_bytes, sum(entry.file_size for entry in entries), str(path))
    for entry in entries:
        name = _safe_name(entry.filename, str(path))
        # The file type of Unix, which is 0 if the archive was made on another system.
        file_type = stat.S_IFMT(entry.external_attr >> 16)
        if file_type not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise UserError(
                f"{path}: refused: its member {name!r} is a link or a device"
            )
        yield name, None if entry.is_dir() else partial(archive.open, entry)
