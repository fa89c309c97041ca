"""The exceptions for faults that a user can repair: each message says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager


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


class LastingError(UserError):
    """A failure that would happen again at every further try, on any machine."""


@contextmanager
def failures_of_file(name: str, problem: str) -> Iterator[None]:
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
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{name}: {problem}: {reason}") from None
