"""Locks of the kernel's, which die with the process that holds them."""

import fcntl
from typing import IO


def try_lock(file: int | IO[str] | IO[bytes], *, shared: bool = False) -> bool:
    """Lock an open file if no other process holds it; return whether it is locked now.

    An OSError says that the file system has no locks.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(file: int | IO[str] | IO[bytes], *, shared: bool = False) -> None:
    """Lock an open file as soon as no other process holds it; OSError as in ``try_lock``."""
    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
