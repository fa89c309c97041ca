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
from functools import partial
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

_INPUT_BYTES = 1 << 14


class _Wrapped:
    """A decompressor that lacks what those of bz2 and lzma have.

    These give so many bytes at most, keep the rest, and say whether they need more input for them.
    """

    _inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)  # eof and unused_data


class _Gzip(_Wrapped):
    """zlib's decompressor, which hands the input back that it has no room for."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return bytes(self._inner.decompress(self._inner.unconsumed_tail + data, max_length))


class _Zstandard(_Wrapped):
    """zstandard's decompressor, which no length can be asked of."""

    needs_input = True

    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor().decompressobj()

    def decompress(self, data: bytes, _: int) -> bytes:
        return bytes(self._inner.decompress(data))


_XZ = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES)
# Format -> its decompressor, what its data begin with, and how the names of its files end.
_FORMATS: dict[str, tuple[Callable[[], Any], bytes, tuple[str, ...]]] = {
    "gzip": (_Gzip, b"\x1f\x8b", (".gz", ".tgz")),
    "bzip2": (bz2.BZ2Decompressor, b"BZh", (".bz2", ".tbz", ".tbz2")),
    "xz": (_XZ, b"\xfd7zXZ\0", (".xz", ".txz")),
    "Zstandard": (_Zstandard, b"\x28\xb5\x2f\xfd", (".zst",)),
}


def decompressed(stream: BinaryIO, file_name: str, name: str) -> BinaryIO:
    """Return the stream's decompressed bytes if the file name's suffix says it is compressed.

    Reading raises a UserError that calls the stream ``name``: it is not of this format, truncated,
    followed by something else, or a bomb.
    """
    suffix = PurePath(file_name.lower()).suffix
    form = next((form for form, (_, _, suffixes) in _FORMATS.items() if suffix in suffixes), None)
    if form is None:
        return stream
    return cast(BinaryIO, io.BufferedReader(_Decompressed(stream, form, name), BUFFER_BYTES))


def refuse_bomb(compressed_bytes: int, plain_bytes: int, name: str) -> None:
    """Raise a UserError where so few bytes became so many that it cannot be text."""
    if plain_bytes > max(UNJUDGED_BYTES, LARGEST_RATIO * compressed_bytes):
        raise UserError(
            f"{name}: refused: {compressed_bytes} bytes grow to {plain_bytes} or more, over "
            f"{LARGEST_RATIO} times as many: a decompression bomb, not text"
        )


class _Decompressed(io.RawIOBase):
    """One compressed stream, or several end to end (as pigz and pbzip2 write them)."""

    def __init__(self, stream: BinaryIO, form: str, name: str) -> None:
        self._stream, self._form, self._name = stream, form, name
        self._input_bytes = ZSTANDARD_STEP_BYTES if form == "Zstandard" else _INPUT_BYTES
        self._decompressor: Any = None  # None before, between and after streams
        self._is_foreign = False  # the stream does not begin as its format does
        self._input, self._output = b"", memoryview(b"")
        self._finished = self._taken = self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer as far as one step of decompression goes; 0 at the checked end."""
        while not self._output:
            data = b""
            if not self._keeps_more():  # what follows the stream before this one, or the next bytes
                data, self._input = self._input, b""
                if not data:
                    data = self._stream.read(self._input_bytes)
                    self._taken += len(data)
            if not data and not self._keeps_more():
                if self._decompressor is None and self._finished:
                    return 0
                raise UserError(
                    f"{self._name}: truncated: its {self._form} data ends too early, after "
                    f"{self._taken} bytes; fetch or make the file again"
                )
            self._output = memoryview(self._decompress(data))
            self._given += len(self._output)
            refuse_bomb(self._taken, self._given, self._name)
        count = min(len(buffer), len(self._output))
        buffer[:count] = self._output[:count]
        self._output = self._output[count:]
        return count

    def _keeps_more(self) -> bool:
        """Say whether there is output to come without further input."""
        return self._decompressor is not None and not self._decompressor.needs_input

    def _decompress(self, data: bytes) -> bytes:
        if self._decompressor is None:
            if self._finished:
                data = data.lstrip(b"\0")  # padding, as tapes and xz have it
            if not data:
                return b""
            decompressor, magic, _ = _FORMATS[self._form]
            self._decompressor = decompressor()
            self._is_foreign = not data.startswith(magic[: len(data)])
        try:
            output: bytes = self._decompressor.decompress(data, STEP_BYTES)
        except (OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            if self._finished and self._is_foreign:
                reason = f"refused: garbage after the end of its {self._form} data"
            else:
                reason = f"damaged, or not a {self._form} file: {error}; fetch or make it again"
            raise UserError(f"{self._name}: {reason}") from None
        if self._decompressor.eof:
            self._input = self._decompressor.unused_data
            self._decompressor = None
            self._finished += 1
        return output


class InputFile(io.FileIO):
    """A file of bytes, not buffered, whose failing reads are errors that name it.

    What the system says of a read that fails names no file, and beside an output that is written
    meanwhile it would be taken for a fault of the output.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file; a UserError says that there is none, or why it cannot be opened."""
        self._path = path
        try:
            super().__init__(str(path), "rb")
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
        except OSError as error:
            raise self._cannot_be_read(error) from None

    # Those of FileIO do not go by ``readinto``, and so pass its errors by.
    read, readall = io.RawIOBase.read, io.RawIOBase.readall  # type: ignore[assignment]

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer as far as one read goes, and return how far; 0 at the end."""
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise self._cannot_be_read(error) from None

    def _cannot_be_read(self, error: OSError) -> UserError:
        return UserError(f"{self._path}: cannot be read: {error.strerror or error}")


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
    with InputFile(path) as file:
        yield decompressed(cast(BinaryIO, file), Path(path).name, str(path))
