"""Locks of the kernel's, which die with the process that holds them."""

import fcntl
import time
from typing import IO

PATIENT = 4
"""Tries for a lock that ``convs2s status`` may hold for a moment, to see whether another does."""

_SECONDS_BETWEEN_TRIES = 0.1


def try_lock(file: int | IO[str] | IO[bytes], *, shared: bool = False, tries: int = 1) -> bool:
    """Lock an open file if no other process holds it; return whether it is locked now.

    An OSError says that the file system has no locks.
    """
    for attempt in range(tries):
        if attempt:
            time.sleep(_SECONDS_BETWEEN_TRIES)
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return True
    return False


def wait_for_lock(file: int | IO[str] | IO[bytes], *, shared: bool = False) -> None:
    """Lock an open file as soon as no other process holds it; OSError as in ``try_lock``."""
    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
