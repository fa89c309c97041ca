"""Lock files by ``flock``. The kernel releases such a lock when the process ends."""

import fcntl
import time
from typing import IO

PATIENT = 4
"""Number of tries for a lock that ``convs2s status`` may hold for a moment.

``convs2s status`` takes a lock only to find out whether another process holds it.
"""

_SECONDS_BETWEEN_TRIES = 0.1


def try_lock(
    file: int | IO[str] | IO[bytes],
    *,
    shared: bool = False,
    tries: int = 1,
) -> bool:
    """Try to lock an open file, and return whether this succeeded.

    The lock is exclusive, unless ``shared`` is true. It is released when the file is closed or the
    process ends. If another process holds the lock, the function tries up to ``tries`` times, with
    a short pause before each further try.

    Raises:
        OSError: the file system has no locks. The error names the file, if it has a name.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    for attempt in range(tries):
        if attempt:
            time.sleep(_SECONDS_BETWEEN_TRIES)
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        except OSError as error:
            _add_name(error, file)
            raise
        return True
    return False


def wait_for_lock(file: int | IO[str] | IO[bytes], *, shared: bool = False) -> None:
    """Lock an open file; wait as long as another process holds the lock.

    See `try_lock` for the parameters and the OSError.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    except OSError as error:
        _add_name(error, file)
        raise


def _add_name(error: OSError, file: int | IO[str] | IO[bytes]) -> None:
    """Add the name of a file to an error of ``flock``, which does not name the file."""
    name = getattr(file, "name", None)
    if isinstance(
        name, str
    ):  # if a file was opened by its number, its name is this number
        error.filename = name
