"""The exceptions that mean: no fault of the program, and the message says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """Bad input, said in one line: the file, the line, what was expected and what to do.

    The command line and the workflow print it without a traceback and exit with code 1. Faults of
    the program itself are never turned into this class.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        """Take the message; what it quotes of a file may hold what ends a line, or moves a cursor.

        Such characters are written as Python writes them in a string, all others as they are.
        """
        shown = ""
        for letter in message:
            shown += letter if letter.isprintable() else repr(letter)[1:-1]
        super().__init__(shown)


class UnfinishedError(UserError):
    """Work that was stopped with its state saved: rerun the same command to resume.

    The exit code is that of sysexits.h for "try again" (EX_TEMPFAIL).
    """

    exit_code = 75


class LastingError(UserError):
    """A failure that the same command meets again, however often and wherever it is tried."""


@contextmanager
def failures_of_file(name: str, expected: str) -> Iterator[None]:
    """Turn whatever the block raises into the UserError that says what file ``name`` is not.

    It belongs around calls that hand a file's content to a library, or pick it to pieces, and
    around nothing else: an error of the program itself must never be blamed on a file. A file that
    was made to can have a library raise anything, so there is no list of classes. ``expected`` is
    such as "not a token store".
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{name}: {expected}: {reason}") from None
