"""Limits of the operating system that a test works under."""

import errno
import resource
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count, islice
from pathlib import Path

from tests.faults.systems import failing


@contextmanager
def _limited(resource_number: int, most: int) -> Iterator[None]:
    before = resource.getrlimit(resource_number)
    resource.setrlimit(resource_number, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource_number, before)


def files_of_at_most(size: int) -> AbstractContextManager[None]:
    """Let no file grow beyond ``size`` bytes, which fails as a full disk does."""
    return _limited(resource.RLIMIT_FSIZE, size)


def open_files_of_at_most(number: int) -> AbstractContextManager[None]:
    """Let this process open no more files at once than so many, whatever it holds already."""
    held = {int(place.name) for place in Path("/dev/fd").iterdir()}
    free = (place for place in count() if place not in held)
    limit = next(islice(free, number, None))  # of the places for open files
    return _limited(resource.RLIMIT_NOFILE, limit)


without_locks = failing(errno.ENOLCK)
"""Stands in for a lock of ``fcntl`` on a file system that grants none."""
