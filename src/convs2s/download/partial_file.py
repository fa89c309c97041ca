"""An unfinished download: its bytes, where they come from, and what the whole has to be."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Never

from tqdm import tqdm

from convs2s.errors import UserError
from convs2s.files.atomic import writing
from convs2s.files.checksums import sha256
from convs2s.files.text import write_lines

BLOCK_BYTES = 1 << 20


class SourceError(Exception):
    """This source does not give the file; the next one may."""


class InterruptedTransferError(SourceError):
    """This source may give the file, or the rest of it, when it is asked again."""


class StartOverError(InterruptedTransferError):
    """The bytes so far are no beginning of what this source gives now."""


class WrongFileError(SourceError):
    """This source gives another file than the expected one."""


@dataclass(frozen=True)
class Expected:
    """What is known of a file before it comes; None for what is not."""

    size: int | None = None
    sha256: str | None = None
    md5: str | None = None

    @property
    def has_checksum(self) -> bool:
        """Whether the file can be told from every other."""
        return bool(self.sha256 or self.md5)

    def check_size(self, size: int | None) -> None:
        """Raise a WrongFileError if the size is known and differs."""
        if None not in (size, self.size) and size != self.size:
            raise WrongFileError(f"has {size} bytes, expected {self.size}")

    def check(self, path: Path) -> None:
        """Raise a WrongFileError if a whole file is not the expected one; it is read for that.

        An empty answer is a server's failure: without a checksum it would be recorded as the truth.
        """
        size = path.stat().st_size
        self.check_size(size)
        if size == 0 and not self.has_checksum:
            raise WrongFileError("is empty")
        # Some upstreams publish nothing better than MD5.
        for name, expected in (("sha256", self.sha256), ("md5", self.md5)):
            if expected:
                with path.open("rb") as stream:
                    got = hashlib.file_digest(stream, name).hexdigest()
                if got != expected.lower():
                    raise WrongFileError(f"has {name} {got}, expected {expected}")


@dataclass(frozen=True)
class Origin:
    """Where a part comes from, and what that source says of the whole file."""

    source: str
    etag: str | None = None
    last_modified: str | None = None
    size: int | None = None

    def continues(self, earlier: "Origin", expected: Expected) -> bool:
        """Say whether this is still the file of earlier.

        Without a checksum to find a mixture of two files afterwards, the source must vouch for it.
        A weak ETag (RFC 9110, 8.8.1) vouches for the meaning only: other bytes may have the same.
        """
        sizes = {self.size, earlier.size} - {None}
        tags = {self.etag, earlier.etag} - {None}
        dates = {self.last_modified, earlier.last_modified} - {None}
        if max(len(sizes), len(tags), len(dates)) > 1:
            return False
        if expected.has_checksum:
            return True
        is_weak = any(str(tag).startswith("W/") for tag in tags)
        has_date = bool(self.last_modified and earlier.last_modified)
        return not is_weak and (has_date or bool(self.etag and earlier.etag))


UPSTREAM = ".part"
MIRROR = ".part-mirror"


class PartialFile:
    """The bytes so far in NAME.part, their origin in NAME.part.json; both outlive the process.

    Mirrors have a part of their own, so that none takes away what upstream has given. Who writes
    here holds the lock of the output (``sole_writer``).
    """

    def __init__(self, output: Path, kind: str = UPSTREAM) -> None:
        """Name the part of an output that upstream gives, or a mirror."""
        self._output = output
        self._path = output.with_name(f"{output.name}{kind}")
        self._origin_path = output.with_name(f"{output.name}{kind}.json")

    @property
    def size(self) -> int:
        """The number of bytes so far."""
        return self._path.stat().st_size if self._path.exists() else 0

    def origin_from(self, source: str) -> Origin | None:
        """Return the origin of the bytes so far if it is this source and there are any."""
        if not self.size or not self._origin_path.exists():
            return None
        try:
            origin = Origin(**json.loads(self._origin_path.read_text("utf-8")))
        except (ValueError, TypeError, RecursionError):
            return None  # not written by this module: the download starts over
        return origin if origin.source == source else None

    def begin(self, origin: Origin) -> None:
        """Forget earlier bytes; those that come next are of this origin."""
        with writing(self._output):
            self._path.write_bytes(b"")
        write_lines(self._origin_path, [json.dumps(asdict(origin))])

    def discard(self) -> None:
        """Remove the bytes and their origin."""
        self._path.unlink(missing_ok=True)
        self._origin_path.unlink(missing_ok=True)

    def check(self, expected: Expected) -> None:
        """Discard the bytes and raise a WrongFileError if they are not the whole, expected file.

        The closed file is read: what was received says nothing of what lies on the disk.
        """
        try:
            expected.check(self._path)
        except WrongFileError:
            self.discard()
            raise

    def sha256(self) -> str:
        """Return the SHA-256 of the bytes so far."""
        return sha256(self._path)

    def finish(self) -> None:
        """Give the complete file its name; what other sources have given of it goes."""
        with writing(self._output):
            with self._path.open("rb") as stream:
                os.fsync(stream.fileno())
            self._path.replace(self._output)
        for kind in (UPSTREAM, MIRROR):
            PartialFile(self._output, kind).discard()

    def append(self, read: Callable[[], bytes], total: int | None, expected: Expected) -> None:
        """Add what ``read`` gives until it gives nothing.

        Where that is more than expected, all of it is discarded: a WrongFileError. A UserError says
        that the disk has too little space for the total, or cannot be written to.
        """
        size = self.size
        with writing(self._output):
            free = shutil.disk_usage(self._path.parent).free
            if total is not None and total - size > free:
                raise UserError(
                    f"{self._output}: {total - size} more bytes to download, {free} are free on "
                    "its disk: make space, or move results elsewhere"
                )
            stream = self._path.open("ab", buffering=0)
        progress: tqdm[Never] = tqdm(
            desc=self._output.name,
            initial=size,
            total=total,
            unit="B",
            unit_scale=True,
            mininterval=0.1 if sys.stderr.isatty() else 60,  # a log file needs no animation
        )
        with stream, progress:
            while data := read():
                rest = memoryview(data)
                try:
                    while rest:
                        rest = rest[stream.write(rest) :]
                except OSError as error:
                    raise UserError(
                        f"{self._output}: cannot be written: {error.strerror}; what came is kept: "
                        "rerun the same command to resume"
                    ) from None
                progress.update(len(data))
                size += len(data)
                if expected.size is not None and size > expected.size:
                    self.discard()
                    raise WrongFileError(f"has more than the expected {expected.size} bytes")
