"""The exceptions for faults that a user can repair: each message says what to do."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UserError(Exception):
    """Bad input. The message is one line: the file, the line, what was expected, what to do.

    The command line and the workflow print the message without a traceback and exit with
    ``exit_code``. A fault of the program itself is never turned into this class.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        r"""Store the message with all characters made printable.

        A message may quote a file, and the quote may have characters that end the line or move the
        cursor of a terminal. They are written as in a Python string, such as ``\n``.
        """
        printable = ""
        for character in message:
            printable += character if character.isprintable() else repr(character)[1:-1]
        super().__init__(printable)


class UnfinishedError(UserError):
    """Work that was stopped with its state saved: rerun the same command to resume.

    The exit code is that of sysexits.h for "try again" (EX_TEMPFAIL).
    """

    exit_code = 75


class LostWorkerError(UserError):
    """Another worker of the same training has ended, and says itself why, if it can."""


class LastingError(UserError):
    """A failure that would happen again at every further try, on any machine."""


FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error numbers of a write to a full disk, or beyond a quota or size limit.

No read fails with one of them.
"""

_MAKE_ROOM = "make room or name another place"
_NO_SERVER = (
    "the server of this folder does not answer, or another machine has replaced the file: mount "
    "the folder again if this goes on"
)

REMEDIES = {
    **dict.fromkeys(FULL, _MAKE_ROOM),
    errno.EIO: f"the disk fails, as the system's log may say: {_MAKE_ROOM}",
    errno.EROFS: "mount the disk for writing, or name another place",
    errno.EMFILE: "this process has too many files open: raise its limit by `ulimit -n`",
    errno.ENFILE: "this machine has too many files open: end other programs",
    errno.ENOLCK: (
        "the disk has no lock to give: ask who runs its server for file locks (for NFS: lockd), or "
        "name another place"
    ),
    errno.ESTALE: _NO_SERVER,
    errno.ENOTCONN: _NO_SERVER,
    errno.ETIMEDOUT: _NO_SERVER,
    errno.EREMOTEIO: _NO_SERVER,
}
"""Error number of a failure of the system, which any use of a file can meet -> what to do."""


def failed_use(
    error: OSError,
    use: str,
    name: object = None,
    meanwhile: str = "",
) -> UserError:
    """Return the error of a file that could not be used, with the remedy, if one is known.

    Args:
        error: what the system said.
        use: what failed, such as "cannot be read".
        name: the file, if it is not the one that the system named.
        meanwhile: what holds in spite of the failure, such as "the one before it is kept".
    """
    named = error.filename if name is None else name
    # The name alone of the folder where the command was typed says nothing.
    named = Path.cwd() if str(named) == "." else named
    said = [error.strerror or str(error), meanwhile]
    said.append(REMEDIES.get(error.errno or 0, _MAKE_ROOM))
    reasons = "; ".join(filter(None, said))
    return UserError(f"{named}: {use}: {reasons}, then run the same command again")


def failure_of_system(
    error: OSError, nameless: str = "a file that is open"
) -> UserError | None:
    """Return the error of a failure of the system (`REMEDIES`); None for any other OSError.

    Whoever reads or writes a file names it in an error of its own, if possible. This is for all
    other places, such as locks, logs and lists of folders. ``nameless`` is the file to name if the
    system names none.
    """
    if error.errno not in REMEDIES:
        return None
    if error.filename is None:
        return failed_use(error, "failed", nameless)
    return failed_use(error, "cannot be used")


@contextmanager
def failures_of_system(nameless: str = "a file that is open") -> Iterator[None]:
    """Turn a failure of the system in the block into a UserError; see `failure_of_system`."""
    try:
        yield
    except OSError as error:
        failure = failure_of_system(error, nameless)
        if failure is None:
            raise
        raise failure from None


@contextmanager
def failures_in_one_line() -> Iterator[None]:
    """Print a ``UserError`` of the block, or a failure of the system, and exit with code 1.

    It is one line. Snakemake would print the lines of code around it, too.
    """
    try:
        with failures_of_system():
            yield
    except UserError as error:
        sys.exit(f"error: {error}")


@contextmanager
def failures_of_file(name: object, problem: str) -> Iterator[None]:
    """Turn any exception of the block into a UserError about the file ``name``.

    ``problem`` says what is wrong with the file, such as "not a token store". A UserError of the
    block is kept.

    Use this only around code that parses the content of a file, or gives it to a library. Around
    other code, a fault of the program would be blamed on the file. A malicious file can make a
    library raise any exception, so all classes are caught.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in REMEDIES:
            raise failed_use(error, "cannot be read", name) from None
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{name}: {problem}: {reason}") from None
