"""Limits of the operating system that a test works under."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size`` bytes, which fails as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def open_files_of_at_most(number: int) -> Iterator[None]:
    """Let this process open no more files at once than so many, whatever it holds already."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = {int(place.name) for place in Path("/dev/fd").iterdir()}
    free = (place for place in count() if place not in held)
    limit = next(islice(free, number, None))  # of the places for open files
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def without_locks(*_: object) -> None:
    """Stand in for a lock of ``fcntl`` on a file system that grants none (ENOLCK)."""
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
