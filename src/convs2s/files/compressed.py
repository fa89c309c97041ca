"""Read and write the bytes of files, which may be compressed and need not be trusted.

One function here reads all compressed files: gzip, bzip2, xz and Zstandard. The readers of the
standard library and of xopen are not used. They do not refuse all damaged files, because bz2 and
lzma ignore garbage after the data. And none of them limits the size of the decompressed data.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, BinaryIO, TextIO, cast

import zstandard
from xopen import xopen

from convs2s.errors import REMEDIES, UserError, failed_use
from convs2s.files.limits import (
    LARGEST_RATIO,
    STEP_BYTES,
    UNJUDGED_BYTES,
    XZ_MEMORY_BYTES,
    ZSTANDARD_STEP_BYTES,
)

BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Compression:
    """A compression format.

    One call of ``decompress`` must not return too much data. For bzip2 and xz, an argument limits
    the returned data. The decompressors of gzip and Zstandard are used without such an argument, so
    each call gets only little input. Decompressed gzip data are at most 1032 times as large as the
    input.
    """

    name: str
    suffixes: tuple[str, ...]
    start: bytes
    """The first bytes of data in this format."""

    decompressor: Callable[[], Any]
    """A function that returns a new decompressor, which decompresses one stream."""

    output_limit: tuple[int, ...] = ()
    """The further arguments of ``decompress``: one that limits its output in bytes, or none."""

    input_bytes: int = 1 << 14
    """Number of compressed bytes that are read and decompressed at a time."""


_COMPRESSIONS = (
    Compression(
        "gzip",
        (".gz", ".tgz"),
        b"\x1f\x8b",
        lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS),
    ),
    Compression(
        "bzip2", (".bz2", ".tbz", ".tbz2"), b"BZh", bz2.BZ2Decompressor, (STEP_BYTES,)
    ),
    Compression(
        "xz",
        (".xz", ".txz"),
        b"\xfd7zXZ\0",
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES),
        (STEP_BYTES,),
    ),
    Compression(
        "Zstandard",
        (".zst",),
        b"\x28\xb5\x2f\xfd",
        lambda: zstandard.ZstdDecompressor().decompressobj(),
        input_bytes=ZSTANDARD_STEP_BYTES,
    ),
)


def compression_of(file_name: str) -> Compression | None:
    """Return the compression that the suffix of a file's name states, or None."""
    suffix = PurePath(file_name.lower()).suffix
    for form in _COMPRESSIONS:
        if suffix in form.suffixes:
            return form
    return None


def decompressed(
    stream: BinaryIO,
    file_name: str,
    name: str,
) -> BinaryIO:
    """Return a stream of decompressed bytes, or ``stream`` itself if it is not compressed.

    The suffix of ``file_name`` tells the format. Reading from the returned stream raises a
    UserError if the data have another format, are truncated, are followed by other data, or are a
    decompression bomb. The message begins with ``name``.
    """
    form = compression_of(file_name)
    if form is None:
        return stream
    return file_of(_decompressed_blocks(stream, form, name))


def refuse_bomb(
    compressed_bytes: int,
    plain_bytes: int,
    name: str,
) -> None:
    """Raise a UserError if decompressed data are so much larger that they cannot be text."""
    if plain_bytes > max(UNJUDGED_BYTES, LARGEST_RATIO * compressed_bytes):
        raise UserError(
            f"{name}: refused: {compressed_bytes} bytes decompress to {plain_bytes} or more, over "
            f"{LARGEST_RATIO} times as many: a decompression bomb, not text"
        )


def _decompressed_blocks(
    stream: BinaryIO,
    form: Compression,
    name: str,
) -> Iterator[bytes]:
    """Yield the decompressed data of a file.

    A file may contain several compressed streams, one after the other, such as those of pigz.
    """
    compressed_bytes = 0
    plain_bytes = 0
    decompressor = form.decompressor()
    # Whether the current stream has ended, so that the file may end here.
    is_complete = False
    # Whether the data after the end of a stream have another format.
    is_foreign = False
    while data := stream.read(form.input_bytes):
        compressed_bytes += len(data)
        # Each round of this loop gets one block out of ``data``, or out of what the decompressor
        # has kept of it.
        needs_input = False
        while data or not needs_input:
            if is_complete:
                # Begin the next stream, if there is one. Files from tapes and xz files are padded
                # with zeros, so zeros may come before the next stream or the end of the file.
                data = data.lstrip(b"\0")
                is_foreign = not data.startswith(form.start[: len(data)])
                if not data:
                    break
                decompressor = form.decompressor()
            try:
                block = decompressor.decompress(data, *form.output_limit)
            except (OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
                reason = f"damaged, or not a {form.name} file: {error}; fetch or make it again"
                if is_foreign:
                    reason = f"refused: garbage after the end of its {form.name} data"
                raise UserError(f"{name}: {reason}") from None
            plain_bytes += len(block)
            refuse_bomb(compressed_bytes, plain_bytes, name)
            yield block
            is_complete = decompressor.eof
            # The input after the end of this stream; empty as long as the stream has not ended.
            data = decompressor.unused_data
            # A decompressor of bzip2 or xz may keep input for which its limited output had no room.
            # The other decompressors keep none, and lack this attribute.
            needs_input = is_complete or getattr(decompressor, "needs_input", True)
    if not is_complete:
        raise UserError(
            f"{name}: truncated: its {form.name} data ends too early, after {compressed_bytes} "
            "bytes; fetch or make the file again"
        )


class _Blocks(io.RawIOBase):
    """A file that consists of blocks of bytes, one after the other."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Copy bytes of one block to the buffer, and return their number, or 0 at the end."""
        while not self._block:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._block = memoryview(block)
        count = min(len(buffer), len(self._block))
        buffer[:count] = self._block[:count]
        self._block = self._block[count:]
        return count


def file_of(blocks: Iterator[bytes]) -> BinaryIO:
    """Return a file that consists of blocks. Each block is taken from the iterator when needed."""
    return cast(BinaryIO, io.BufferedReader(_Blocks(blocks), BUFFER_BYTES))


@contextmanager
def _named_failures(path: str | Path) -> Iterator[None]:
    """Turn an OSError from opening or reading a file into a UserError that names the file.

    The OSError of a failed read names no file. If an output were written at the same time,
    `convs2s.files.atomic.writing` would mistake it for an error of the output.
    """
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        if error.errno in REMEDIES:
            raise failed_use(error, "cannot be read", path) from None
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


class _InputFile(io.FileIO):
    """A file of bytes whose read errors name the file."""

    # The methods of RawIOBase call readinto below. FileIO's own read and readall do not, so their
    # errors would not name the file.
    read = io.RawIOBase.read  # type: ignore[assignment]
    readall = io.RawIOBase.readall

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Read bytes into the buffer, and return their number, or 0 at the end."""
        with _named_failures(self.name):
            return super().readinto(buffer)


def open_input(path: str | Path) -> BinaryIO:
    """Open a file to read its bytes without decompression.

    If opening the file or reading from it fails, a UserError names the file.
    """
    with _named_failures(path):
        return cast(BinaryIO, io.BufferedReader(_InputFile(path), BUFFER_BYTES))


def open_text(path: str | Path) -> TextIO:
    """Open a file to write UTF-8 text, compressed if its suffix is that of a compression.

    Line feeds are written unchanged on every system.
    """
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8", newline="\n")


def open_bytes(path: str | Path) -> BinaryIO:
    """Open a file to write bytes, compressed if its suffix is that of a compression."""
    if Path(path).suffix != ".zst":
        return xopen(path, "wb", threads=0)
    # Unlike the other formats, Zstandard data contain a checksum only on request.
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    raw = compressor.stream_writer(Path(path).open("wb"))  # noqa: SIM115
    return io.BufferedWriter(cast(io.RawIOBase, raw))


@contextmanager
def decompressed_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes once, decompressed if its suffix is that of a compression.

    Opening the file and reading from it raise a UserError if the file is missing, damaged,
    truncated or a decompression bomb, or if the disk fails.
    """
    with open_input(path) as file:
        yield decompressed(file, Path(path).name, str(path))
