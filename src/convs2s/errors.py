"""The exceptions for failures that a user can repair; their messages say how."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UserError(Exception):
    """Bad input. The message is one line: the file, the line, what was expected, what to do.

    The command line and the workflow print the message without a traceback and exit with
    ``exit_code``. A bug of the program never raises this exception.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        r"""Store the message, with escapes such as ``\n`` in place of unprintable characters.

        A message may quote a file, and the quote may contain characters that end the line or move
        the cursor of a terminal.
        """
        printable = ""
        for character in message:
            printable += character if character.isprintable() else repr(character)[1:-1]
        super().__init__(printable)


class UnfinishedError(UserError):
    """Work was stopped, and its state is saved: the same command resumes it.

    The exit code is that of sysexits.h for "try again" (EX_TEMPFAIL).
    """

    exit_code = 75


class LostWorkerError(UserError):
    """Another worker of the same training has ended. That worker reports the reason, if it can."""


class UnreadableFileError(UserError):
    """A file could not be read, for example because the disk or the file server failed.

    The content of the file may be intact.
    """


class LastingError(UserError):
    """A failure that any further try would repeat, also on another machine."""


FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error numbers of a write to a full disk, or beyond a quota or a size limit.

They never come from a read.
"""

_MAKE_ROOM = "make room or name another place"
_NO_SERVER = (
    "the file server of this folder does not answer, or another machine has replaced the file: if "
    "this does not end, mount the folder again"
)

REMEDIES = {
    **dict.fromkeys(FULL, _MAKE_ROOM),
    errno.EIO: f"the disk fails (see the system's log): {_MAKE_ROOM}",
    errno.EROFS: "mount the disk for writing, or name another place",
    errno.EMFILE: "this process has too many files open: raise its limit by `ulimit -n`",
    errno.ENFILE: "this machine has too many files open: end other programs",
    errno.ENOLCK: (
        "the file server grants no file locks: ask its administrator for them (NFS: lockd), or "
        "name another place"
    ),
    errno.ESTALE: _NO_SERVER,
    errno.ENOTCONN: _NO_SERVER,
    errno.ETIMEDOUT: _NO_SERVER,
    errno.EREMOTEIO: _NO_SERVER,
}
"""Error number of a system failure that any use of a file can raise -> what the user can do."""


def failed_use(
    error: OSError,
    use: str,
    name: object = None,
    meanwhile: str = "",
) -> UserError:
    """Return the UserError for a file that could not be used, with the remedy from `REMEDIES`.

    Args:
        error: the error of the system.
        use: what failed, such as "cannot be read".
        name: the file to name, if it is not the one that ``error`` names.
        meanwhile: what holds in spite of the failure, such as "the one before it is kept".
    """
    named = error.filename if name is None else name
    if str(named) == ".":
        # "." would not tell the user which folder this is.
        named = Path.cwd()
    said = [error.strerror or str(error), meanwhile]
    said.append(REMEDIES.get(error.errno or 0, _MAKE_ROOM))
    reasons = "; ".join(filter(None, said))
    return UserError(f"{named}: {use}: {reasons}, then run the same command again")


def failure_of_system(
    error: OSError, nameless: str = "a file that is open"
) -> UserError | None:
    """Return the UserError for a failure of the system (`REMEDIES`), or None for another OSError.

    Where code reads or writes a file, it should raise a UserError of its own that names the file.
    This function is for all other places, such as locks, logs and the listing of folders.
    If ``error`` names no file, the message has ``nameless`` in place of the name.
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

    Only the line of the message is printed. If Snakemake got the exception, it would also print the
    lines of code around it.
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
    block is raised unchanged.

    All classes of exceptions are caught, because a malicious file can make a library raise any of
    them. Therefore use this only around code that parses the content of a file or passes it to a
    library: around other code, a bug of the program would be blamed on the file.
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
