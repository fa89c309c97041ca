"""What of the operating system a test needs, and calls of it that fail."""

import os
import sys
from collections.abc import Callable

import pytest

READS_PROC = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")


def failing(number: int) -> Callable[..., None]:
    """A call of the system that fails, and names no file, as `write` and `close` do not."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail
