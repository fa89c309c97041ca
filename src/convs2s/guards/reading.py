"""Where inputs are read: a disk that fails is said of the file that lies on it.

What the system says of a read that fails names no file, and beside an output that is written
meanwhile it would be taken for a fault of the output.
"""

import io
from pathlib import Path

from convs2s.errors import UserError


class InputFile(io.FileIO):
    """A file of bytes, not buffered, whose failing reads are errors that name it."""

    def __init__(self, path: str | Path) -> None:
        """Open the file.

        Raises:
            UserError: there is no such file, or it cannot be opened.
        """
        self._path = path
        try:
            super().__init__(str(path), "rb")
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
        except OSError as error:
            raise self._cannot_be_read(error) from None

    def read(self, size: int | None = -1, /) -> bytes:
        """Return so many bytes at most, all that are left without a size; none at the end.

        Raises:
            UserError: the disk fails, or such.
        """
        try:
            return super().read(size)
        except OSError as error:
            raise self._cannot_be_read(error) from None

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer as far as one read goes, and return how far; 0 at the end.

        Raises:
            UserError: the disk fails, or such.
        """
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise self._cannot_be_read(error) from None

    def _cannot_be_read(self, error: OSError) -> UserError:
        return UserError(f"{self._path}: cannot be read: {error.strerror or error}")
