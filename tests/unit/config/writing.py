"""Files of a configuration as tests write them."""

from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.errors import UserError


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def fault(root: Path, given: dict[str, object] | None = None) -> str:
    """Return the one line that says why the configuration is refused."""
    with pytest.raises(UserError) as caught:
        load(root, given)
    message = str(caught.value)
    assert "\n" not in message
    return message
