"""The one boundary between what libraries raise over a user's file and the user's one line."""

from collections.abc import Iterator
from contextlib import contextmanager

from convs2s.errors import UserError


@contextmanager
def faults_of_file(name: str, expected: str) -> Iterator[None]:
    """Turn whatever the block raises into the error that says what the file is not.

    It belongs around calls that hand a file's content to a library, or pick it to pieces, and
    around nothing else: an error of the program itself must never be blamed on a file. A file that
    was made to can have a library raise anything, so there is no list of classes.

    Args:
        name: the file.
        expected: what it is not, such as "not a token store".

    Raises:
        UserError: the block has raised something; its own are left as they are.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{name}: {expected}: {reason}") from None
