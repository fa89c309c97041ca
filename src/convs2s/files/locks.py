"""Lock files with kernel locks, which the kernel releases when the process ends."""

import fcntl
import time
from contextlib import suppress
from typing import IO

PATIENT = 4
"""Number of tries to get a lock that ``convs2s status`` may hold for a moment.

The command takes the lock only to find out whether another process holds it.
"""

_SECONDS_BETWEEN_TRIES = 0.1


def try_lock(
    file: int | IO[str] | IO[bytes],
    *,
    shared: bool = False,
    tries: int = 1,
) -> bool:
    """Try to lock an open file, and return whether this succeeded.

    The lock is exclusive, or else ``shared``. It is released when the file is closed or the process
    ends. If another process holds the lock, the function tries up to ``tries`` times, with a short
    pause before each further try.

    Raises:
        OSError: the file system has no locks. The error names the file, if it has a name.
    """
    for attempt in range(tries):
        if attempt:
            time.sleep(_SECONDS_BETWEEN_TRIES)
        with suppress(BlockingIOError):
            _lock(file, shared, fcntl.LOCK_NB)
            return True
    return False


def wait_for_lock(file: int | IO[str] | IO[bytes], *, shared: bool = False) -> None:
    """Lock an open file, and wait for as long as another process holds the lock.

    See `try_lock` for the parameters and the OSError.
    """
    _lock(file, shared)


def _lock(file: int | IO[str] | IO[bytes], shared: bool, flags: int = 0) -> None:
    """Call ``flock``, and name the file in its error, if it has a name."""
    try:
        fcntl.flock(file, flags | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX))
    except OSError as error:
        name = getattr(file, "name", None)
        if isinstance(name, str):  # that of a file without a name is its number
            error.filename = name
        raise
