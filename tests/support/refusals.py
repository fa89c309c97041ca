"""What a reader says of wrong input, for the tables of refusals in tests/faults."""

from collections.abc import Callable

import pytest

from convs2s.errors import UserError


def refusal(
    function: Callable[..., object], *arguments: object, **named: object
) -> str:
    """Return the message with which a function refuses its arguments."""
    with pytest.raises(UserError) as caught:
        function(*arguments, **named)
    return str(caught.value)


def says(message: str, *words: str) -> None:
    """Fail the test unless a message names each of the words."""
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in: {message}"


def rows(table: str) -> list[list[str]]:
    """Return the cells of a table of text, which has a line for each row and => between cells.

    Escapes such as a backslash and n mean what they do in Python.
    """
    return [
        [cell.strip().encode().decode("unicode_escape") for cell in line.split("=>")]
        for line in table.strip().splitlines()
    ]
