"""A preparation of the user's own: what it makes of a line must be a line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.config.extensions import export_extensions
from convs2s.errors import UserError
from convs2s.text.preparation import Preparation

OWN = """
class Own:
    def __init__(self, language):
        self.language = language

    def prepare(self, line):
        return {prepare}

    def restore(self, words):
        return {restore}

PREPARATIONS = {{"own": Own}}
"""


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., Preparation]:
    def write(prepare: str = "line", restore: str = "words") -> Preparation:
        (tmp_path / "own.py").write_text(OWN.format(prepare=prepare, restore=restore))
        export_extensions(["own.py"], tmp_path)
        return Preparation("own", "en")

    return write


def test_its_words_are_taken(own: Callable[..., Preparation]) -> None:
    preparation = own("line.lower()", "words.title()")
    assert (preparation.prepare("Two"), preparation.restore("two cars")) == (
        "two",
        "Two Cars",
    )


@pytest.mark.parametrize("made", ["line + '\\n'", "None", "line.split()"])
def test_what_is_no_line_is_refused(own: Callable[..., Preparation], made: str) -> None:
    with pytest.raises(
        UserError, match=r"own\.prepare: expected a line of text, not .* of 'a'"
    ):
        own(made).prepare("a")
    with pytest.raises(
        UserError, match=r"preparation own\.restore: expected a line of text"
    ):
        own(restore=made.replace("line", "words")).restore("a")


def test_what_it_raises_is_named_with_its_line(own: Callable[..., Preparation]) -> None:
    with pytest.raises(
        UserError, match=r"own\.py:7: ZeroDivisionError: division by zero"
    ):
        own("1 / 0").prepare("a")


def test_a_function_may_make_it(
    own: Callable[..., Preparation], tmp_path: Path
) -> None:
    own("line.lower()")
    path = tmp_path / "own.py"
    path.write_text(
        path.read_text().replace('{"own": Own}', "{'own': lambda code: Own(code)}")
    )
    assert Preparation("own", "en").prepare("Two") == "two"
    path.write_text("PREPARATIONS = {'own': lambda code: None}")
    with pytest.raises(
        UserError, match="preparation own: AttributeError: 'NoneType' object"
    ):
        Preparation("own", "en")
