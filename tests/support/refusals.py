"""What a reader says of wrong input, for the tables of refusals in tests/faults."""

from collections.abc import Callable
from typing import Any

import pytest

from convs2s.errors import UserError


def refusal(function: Callable[..., Any], *given: Any, **named: Any) -> str:
    """Return the message with which a function refuses its arguments."""
    with pytest.raises(UserError) as caught:
        function(*given, **named)
    return str(caught.value)


def says(message: str, *words: str) -> None:
    """Fail the test unless a message names each of the words, between which ... may stand."""
    parts = " ... ".join(words).split(" ... ")
    missing = [part for part in parts if part not in message]
    assert not missing, f"{missing} not in: {message}"


def refuses(
    words: str, function: Callable[..., Any], *given: Any, **named: Any
) -> None:
    """Fail the test unless a function refuses its arguments and says these words."""
    says(refusal(function, *given, **named), words)


def rows(table: str) -> list[list[str]]:
    r"""Return the cells of a table that is written as text: a line for each row, => between cells.

    Blanks around a cell are no part of it. Escapes, such as \n, mean what they do in Python, so all
    else is ASCII. The names in `parametrize` below a table say what its cells are.
    """
    return [
        [
            cell.strip().encode("ascii").decode("unicode_escape")
            for cell in line.split("=>")
        ]
        for line in table.strip().splitlines()
    ]
