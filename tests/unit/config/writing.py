"""Files of a configuration as tests write them."""

from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.errors import UserError


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def append(path: Path, text: str) -> None:
    """Write text behind what a file says."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{text}")


def assert_fault(root: Path, start: str, hint: str) -> None:
    """Expect that the configuration is refused in a line of this start that gives the hint."""
    message = fault(root)
    assert message.startswith(start)
    assert hint in message


def fault(root: Path, given: dict[str, object] | None = None) -> str:
    """Return the one line that says why the configuration is refused."""
    with pytest.raises(UserError) as caught:
        load(root, given)
    message = str(caught.value)
    assert "\n" not in message
    return message
