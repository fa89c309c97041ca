"""Read and write the bytes of files, which may be compressed and need not be trusted.

All compressed files are read by one function here, whether they are gzip, bzip2, xz or Zstandard.
The standard library and xopen do not detect all faults: bz2 and lzma ignore garbage after the data,
and none of them limits the size of the decompressed data.
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

    The output of one call of ``decompress`` must be limited. bzip2 and xz have an argument for
    this. The decompressors of gzip and Zstandard always return all data of their input, so they are
    given little input. gzip data grow at most 1032 times.
    """

    name: str
    suffixes: tuple[str, ...]
    start: bytes
    """The first bytes of data in this format."""

    decompressor: Callable[[], Any]
    """Creates a decompressor for one compressed stream."""

    output_limit: tuple[int, ...] = ()
    """The argument of ``decompress`` that limits its output in bytes, or nothing."""

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
    """Return a stream of decompressed bytes, or the stream itself if it is not compressed.

    The suffix of ``file_name`` decides on the format. Reading from the returned stream raises a
    UserError, in which the stream is called ``name``, if the data have another format, are
    truncated, are followed by other data, or are a decompression bomb.
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
    """Raise a UserError if compressed data grow so much that they cannot be text."""
    if plain_bytes > max(UNJUDGED_BYTES, LARGEST_RATIO * compressed_bytes):
        raise UserError(
            f"{name}: refused: {compressed_bytes} bytes grow to {plain_bytes} or more, over "
            f"{LARGEST_RATIO} times as many: a decompression bomb, not text"
        )


def _decompressed_blocks(
    stream: BinaryIO,
    form: Compression,
    name: str,
) -> Iterator[bytes]:
    """Yield the data of one compressed stream, or of several end to end, as pigz writes them."""
    compressed_bytes = 0
    plain_bytes = 0
    decompressor = form.decompressor()
    # Whether the last stream has ended, so that the file may end here.
    is_complete = False
    # Whether the data after the end of a stream have another format.
    is_foreign = False
    while data := stream.read(form.input_bytes):
        compressed_bytes += len(data)
        needs_input = False
        while data or not needs_input:
            if is_complete:
                # Another stream may follow. Files from tapes and xz files may be padded with zeros.
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
            # What follows the end of this stream. If the stream has not ended, this is empty, and a
            # decompressor with a limited output may still have input, as its needs_input says.
            data = decompressor.unused_data
            needs_input = is_complete or getattr(decompressor, "needs_input", True)
    if not is_complete:
        raise UserError(
            f"{name}: truncated: its {form.name} data ends too early, after {compressed_bytes} "
            "bytes; fetch or make the file again"
        )


class _Blocks(io.RawIOBase):
    """A file that contains the bytes of blocks, one block after the other."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Copy bytes of one block to the buffer, and return their number, 0 at the end."""
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
    """Return a file with the bytes of blocks; each block is taken from the iterator when needed."""
    return cast(BinaryIO, io.BufferedReader(_Blocks(blocks), BUFFER_BYTES))


@contextmanager
def _named_failures(path: str | Path) -> Iterator[None]:
    """Turn an OSError while reading a file into a UserError that names the file.

    The error of a failed read names no file. While an output is written at the same time, `writing`
    would take it for an error of the output.
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

    # FileIO's own read and readall do not call readinto, so their errors would not name the file.
    read = io.RawIOBase.read  # type: ignore[assignment]
    readall = io.RawIOBase.readall

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Read bytes into the buffer, and return their number, 0 at the end."""
        with _named_failures(self.name):
            return super().readinto(buffer)


def open_input(path: str | Path) -> BinaryIO:
    """Open a file to read its bytes without decompression.

    Opening the file and reading from it raise a UserError that names the file.
    """
    with _named_failures(path):
        return cast(BinaryIO, io.BufferedReader(_InputFile(path), BUFFER_BYTES))


def open_text(path: str | Path) -> TextIO:
    """Open a file to write UTF-8 text, compressed if the suffix of ``path`` asks for it.

    Line feeds are written as they are on every system.
    """
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8", newline="\n")


def open_bytes(path: str | Path) -> BinaryIO:
    """Open a file to write bytes, compressed if the suffix of ``path`` asks for it."""
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
