"""Bytes in and out of files, compressed ones too, which are read with suspicion.

The standard library and xopen differ in what they overlook (bz2 and lzma ignore trailing garbage,
none bounds the growth), so gzip, bzip2, xz and Zstandard all pass through one reader here.
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

from convs2s.errors import UserError
from convs2s.files.limits import (
    LARGEST_RATIO,
    STEP_BYTES,
    UNJUDGED_BYTES,
    XZ_MEMORY_BYTES,
    ZSTANDARD_STEP_BYTES,
)

BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class _Format:
    """A format of compression."""

    name: str
    suffixes: tuple[str, ...]
    start: bytes  # what its data begin with
    decompressor: Callable[[], Any]
    most: tuple[int, ...] = ()
    """Bytes that the decompressor is told to give at a time. Those of zlib and Zstandard give all
    that their input holds, and they get little: gzip's grows 1032 times at most."""
    input_bytes: int = 1 << 14  # that it gets at a time


_FORMATS = (
    _Format(
        "gzip",
        (".gz", ".tgz"),
        b"\x1f\x8b",
        lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS),
    ),
    _Format("bzip2", (".bz2", ".tbz", ".tbz2"), b"BZh", bz2.BZ2Decompressor, (STEP_BYTES,)),
    _Format(
        "xz",
        (".xz", ".txz"),
        b"\xfd7zXZ\0",
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES),
        (STEP_BYTES,),
    ),
    _Format(
        "Zstandard",
        (".zst",),
        b"\x28\xb5\x2f\xfd",
        lambda: zstandard.ZstdDecompressor().decompressobj(),
        input_bytes=ZSTANDARD_STEP_BYTES,
    ),
)


def decompressed(stream: BinaryIO, file_name: str, name: str) -> BinaryIO:
    """Return the stream's decompressed bytes if the file name's suffix says it is compressed.

    Reading raises a UserError that calls the stream ``name``: it is not of this format, truncated,
    followed by something else, or a bomb.
    """
    suffix = PurePath(file_name.lower()).suffix
    for form in _FORMATS:
        if suffix in form.suffixes:
            return file_of(_decompressed_blocks(stream, form, name))
    return stream


def refuse_bomb(compressed_bytes: int, plain_bytes: int, name: str) -> None:
    """Raise a UserError where so few bytes became so many that it cannot be text."""
    if plain_bytes > max(UNJUDGED_BYTES, LARGEST_RATIO * compressed_bytes):
        raise UserError(
            f"{name}: refused: {compressed_bytes} bytes grow to {plain_bytes} or more, over "
            f"{LARGEST_RATIO} times as many: a decompression bomb, not text"
        )


def _decompressed_blocks(stream: BinaryIO, form: _Format, name: str) -> Iterator[bytes]:
    """Yield what is in one compressed stream, or in several end to end, as pigz writes them."""
    taken = 0
    given = 0
    decompressor = form.decompressor()
    is_between = False  # two streams, where the data may end
    is_foreign = False  # what follows a stream, and is none of this format
    while data := stream.read(form.input_bytes):
        taken += len(data)
        is_hungry = False
        while not is_hungry:
            if is_between:
                data = data.lstrip(b"\0")  # padding, as tapes and xz have it
                is_foreign = not data.startswith(form.start[: len(data)])
                if not data:
                    break
                decompressor = form.decompressor()
            try:
                block = decompressor.decompress(data, *form.most)
            except (OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
                reason = f"damaged, or not a {form.name} file: {error}; fetch or make it again"
                if is_foreign:
                    reason = f"refused: garbage after the end of its {form.name} data"
                raise UserError(f"{name}: {reason}") from None
            given += len(block)
            refuse_bomb(taken, given, name)
            yield block
            is_between = decompressor.eof
            data = decompressor.unused_data
            needs_input = is_between or getattr(decompressor, "needs_input", True)
            is_hungry = needs_input and not data
    if not is_between:
        raise UserError(
            f"{name}: truncated: its {form.name} data ends too early, after {taken} bytes; "
            "fetch or make the file again"
        )


class _Blocks(io.RawIOBase):
    """A file of the bytes of some blocks."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer as far as one block goes; 0 at the end."""
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
    """Return a file of the bytes of some blocks, each of which is made when it is read."""
    return cast(BinaryIO, io.BufferedReader(_Blocks(blocks), BUFFER_BYTES))


@contextmanager
def _named_failures(path: str | Path) -> Iterator[None]:
    """Have errors name the file that is read.

    What the system says of a read that fails names no file, and beside an output that is written
    meanwhile it would be taken for a fault of the output.
    """
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


class _InputFile(io.FileIO):
    """A file of bytes whose failing reads are errors that name it."""

    # Those of FileIO do not go by ``readinto``, and so pass its errors by.
    read = io.RawIOBase.read  # type: ignore[assignment]
    readall = io.RawIOBase.readall

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer as far as one read goes, and return how far; 0 at the end."""
        with _named_failures(self.name):
            return super().readinto(buffer)


def open_input(path: str | Path) -> BinaryIO:
    """Open a file for reading its bytes as they are; a UserError, also while reading, names it."""
    with _named_failures(path):
        return cast(BinaryIO, io.BufferedReader(_InputFile(path), BUFFER_BYTES))


def open_text(path: str | Path) -> TextIO:
    """Open UTF-8 text for writing, compressed if its suffix says so; line feeds stay."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8", newline="\n")


def open_bytes(path: str | Path) -> BinaryIO:
    """Open bytes for writing, compressed if the suffix says so."""
    if Path(path).suffix != ".zst":
        return xopen(path, "wb", threads=0)
    # Unlike the other formats, it has a checksum only where one is asked for.
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    raw = compressor.stream_writer(Path(path).open("wb"))  # noqa: SIM115
    return io.BufferedWriter(cast(io.RawIOBase, raw))


@contextmanager
def decompressed_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading its bytes once, decompressed if its suffix says it is compressed.

    A UserError, also while reading: missing, damaged, cut, a decompression bomb, a failing disk.
    """
    with open_input(path) as file:
        yield decompressed(file, Path(path).name, str(path))
