"""Keep the bytes of an unfinished download, and describe their source and the expected file."""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Never

from tqdm import tqdm

from convs2s.download.archives import check_whole, shows_its_end
from convs2s.errors import UserError, failed_use
from convs2s.files.atomic import writing
from convs2s.files.checksums import record_path, sha256
from convs2s.files.text import write_lines

BLOCK_BYTES = 1 << 20

_PAGE_SUFFIXES = (".html", ".htm", ".xhtml")
_PAGE = re.compile(
    rb"(\xef\xbb\xbf)?(?>\s+|<\?xml.*?\?>|<!--.*?-->)*+"
    rb"<(!doctype\s+html|html|head|body|script|meta|iframe)[\s/>]",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of a web page, which no corpus has. Comments and a line ``<?xml?>`` may precede."""
_PAGE_BYTES = 4096  # how much of the beginning of a file is searched for _PAGE


class SourceError(Exception):
    """A source does not provide the file, but the next source may."""


class InterruptedTransferError(SourceError):
    """The transfer was interrupted, and the same source may provide the rest on another try.

    ``pause`` is how many seconds the source asks to wait before that try.
    """

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


class StartOverError(InterruptedTransferError):
    """The bytes so far do not belong to the file that the source has now, so start again at 0."""


class WrongFileError(SourceError):
    """The source provides a file that is not the expected one."""


class UnusableFileError(WrongFileError):
    """The source provides a web page, or a file that is damaged or of another format."""


@dataclass(frozen=True)
class Expected:
    """What is known about a file before its download. None means unknown."""

    size: int | None = None
    sha256: str | None = None
    md5: str | None = None

    @property
    def has_checksum(self) -> bool:
        """Whether a checksum is known, so that any other file is recognized as wrong."""
        return bool(self.sha256 or self.md5)

    def check_size(self, size: int | None) -> None:
        """Raise a WrongFileError if both sizes are known, and ``size`` is not the expected one."""
        are_known = size is not None and self.size is not None
        if are_known and size != self.size:
            raise WrongFileError(f"has {size} bytes, expected {self.size}")

    def check(self, path: Path) -> None:
        """Read a complete file, and raise a WrongFileError if it is not the expected one.

        An empty file without a known checksum is wrong as well. An empty answer is a failure of the
        server, and its checksum must not be recorded as that of the file.
        """
        size = path.stat().st_size
        self.check_size(size)
        if size == 0 and not self.has_checksum:
            raise UnusableFileError("is empty")
        # MD5 is supported because some upstream sites publish no other checksum.
        for name, expected in (("sha256", self.sha256), ("md5", self.md5)):
            if expected:
                with path.open("rb") as stream:
                    got = hashlib.file_digest(stream, name).hexdigest()
                if got != expected.lower():
                    raise WrongFileError(f"has {name} {got}, expected {expected}")


@dataclass(frozen=True)
class Origin:
    """The source of a partial file, and what the source says about the complete file.

    ``source`` is a path, or a URL with its credentials masked. The other fields are None if the
    source does not give them.
    """

    source: str
    etag: str | None = None
    last_modified: str | None = None
    size: int | None = None

    def continues(self, earlier: "Origin", expected: Expected) -> bool:
        """Return whether the source still has the same file as at an ``earlier`` request.

        No size, ETag or date may differ. If the expected checksum is known, this is enough, because
        a mixture of two files would be noticed in the end. Otherwise the ETags must show that the
        file is the same. A date or a weak ETag (RFC 9110, section 8.8) is not enough: both stay the
        same if the file is replaced within a second, or if the new file has the time of the old.
        """
        sizes = {self.size, earlier.size} - {None}
        tags = {self.etag, earlier.etag} - {None}
        dates = {self.last_modified, earlier.last_modified} - {None}
        for known_values in (sizes, tags, dates):
            if len(known_values) > 1:
                return False
        if expected.has_checksum:
            return True
        is_weak = any(str(tag).startswith("W/") for tag in tags)
        return bool(self.etag and earlier.etag) and not is_weak


UPSTREAM = ".part"
MIRROR = ".part-mirror"
"""Suffixes of the partial files with bytes from upstream and from mirrors."""


class PartialFile:
    """The bytes that have been downloaded so far, in ``NAME.part`` beside the output.

    Their `Origin` is in ``NAME.part.json``. Both files are kept when the process ends. The bytes
    from mirrors are in another partial file, ``NAME.part-mirror``, so that a mirror does not
    replace the bytes from upstream.

    The caller of a method that writes must hold the lock of the output (``sole_writer``).
    """

    def __init__(
        self,
        output: Path,
        expected: Expected,
        kind: str = UPSTREAM,
    ) -> None:
        """Name the partial file of ``output``; nothing is created yet.

        Args:
            output: the file that is downloaded.
            expected: what is known of the complete file.
            kind: ``UPSTREAM`` or ``MIRROR``.
        """
        self.expected = expected
        self._output = output
        self._path = output.with_name(f"{output.name}{kind}")
        self._origin_path = output.with_name(f"{output.name}{kind}.json")

    @property
    def shows_its_end(self) -> bool:
        """Whether `check` notices that bytes at the end of the file are missing."""
        is_known = self.expected.has_checksum or self.expected.size is not None
        return is_known or shows_its_end(self._output.name)

    @property
    def is_page(self) -> bool:
        """Whether the output is a web page by its name."""
        return self._output.name.lower().endswith(_PAGE_SUFFIXES)

    @property
    def name(self) -> str:
        """The name of the output."""
        return self._output.name

    @property
    def size(self) -> int:
        """The number of bytes that have been downloaded so far."""
        return self._path.stat().st_size if self._path.exists() else 0

    def origin_from(self, source: str) -> Origin | None:
        """Return the origin of the bytes so far.

        Return None if there are no bytes, if they come from another source, or if the record of
        their origin is missing or damaged.
        """
        if not self.size or not self._origin_path.exists():
            return None
        try:
            origin = Origin(**json.loads(self._origin_path.read_text("utf-8")))
        except (ValueError, TypeError, RecursionError):
            # The record is damaged or not from this module, so the download starts at byte 0.
            return None
        return origin if origin.source == source else None

    def begin(self, origin: Origin) -> None:
        """Remove all earlier bytes, and record the origin of the bytes that will be appended."""
        with writing(self._output):
            self._path.write_bytes(b"")
        write_lines(self._origin_path, [json.dumps(asdict(origin))])

    def discard(self) -> None:
        """Remove the bytes and the record of their origin."""
        self._path.unlink(missing_ok=True)
        self._origin_path.unlink(missing_ok=True)

    def check(self) -> None:
        """Discard the bytes and raise a WrongFileError if they are not the complete expected file.

        The file is read from the disk, because its bytes can differ from those that were received.
        """
        try:
            self.expected.check(self._path)
            self._check_content()
        except WrongFileError:
            self.discard()
            raise

    def _check_content(self) -> None:
        """Raise an UnusableFileError if the content of a file without a checksum is not usable.

        A web page is not usable, and a compressed file or an archive must be whole. If a checksum
        is known, it has already shown that the content is right.
        """
        if self.expected.has_checksum:
            return
        with self._path.open("rb") as stream:
            start = stream.read(_PAGE_BYTES)
        if _PAGE.match(start) and not self.is_page:
            raise UnusableFileError("is a web page")
        try:
            check_whole(self._path, self.name)
        except UserError as error:
            raise UnusableFileError(str(error)) from None

    def finish(self) -> None:
        """Rename the complete file to the output, and remove all partial files of the output.

        If no checksum is known, the SHA-256 of the file is recorded first.
        """
        if not self.expected.has_checksum:
            record = f"{sha256(self._path)}  {self._output.name}"
            write_lines(record_path(self._output), [record])
        with writing(self._output):
            with self._path.open("rb") as stream:
                os.fsync(stream.fileno())
            self._path.replace(self._output)
        discard_all(self._output)

    def append(self, read: Callable[[], bytes], total: int | None) -> None:
        """Append the bytes that ``read`` returns until it returns none; show progress on stderr.

        ``total`` is the size of the complete file, if known.

        Raises:
            WrongFileError: there are more bytes than expected. All bytes are then discarded.
            UserError: the disk has too little space for the complete file, or cannot be written to.
        """
        size = self.size
        with writing(self._output):
            free = shutil.disk_usage(self._path.parent).free
            if total is not None and total - size > free:
                raise UserError(
                    f"{self._output}: {total - size} more bytes to download, but only {free} are "
                    "free on its disk: make space, or move results elsewhere"
                )
            stream = self._path.open("ab", buffering=0)
        progress: tqdm[Never] = tqdm(
            desc=self._output.name,
            initial=size,
            total=total,
            unit="B",
            unit_scale=True,
            # In seconds. A log file gets fewer lines than a terminal.
            mininterval=0.1 if sys.stderr.isatty() else 60,
        )
        with stream, progress:
            while data := read():
                rest = memoryview(data)
                try:
                    while rest:
                        # An unbuffered stream may write only a part.
                        written = stream.write(rest)
                        rest = rest[written:]
                except OSError as error:
                    kept = "the bytes so far are kept"
                    raise failed_use(
                        error, "cannot be written", self._output, kept
                    ) from None
                progress.update(len(data))
                size += len(data)
                most = self.expected.size
                if most is not None and size > most:
                    self.discard()
                    raise WrongFileError(f"has more than the expected {most} bytes")


def discard_all(output: Path) -> None:
    """Remove all partial files of a complete output."""
    for kind in (UPSTREAM, MIRROR):
        PartialFile(output, Expected(), kind).discard()
