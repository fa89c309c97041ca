"""A bar where somebody watches, a line a minute where nobody does."""

import sys

import pytest

from convs2s.decoding import progress as module
from convs2s.decoding.progress import counted, progress


class _Screen:
    """A standard error that is a terminal."""

    def __init__(self) -> None:
        self.said = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.said += text

    def flush(self) -> None:
        pass


def test_a_short_work_leaves_nothing_in_a_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert list(counted("abc", " lines")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_a_long_one_leaves_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 1e-9)
    with progress(" sentences", 9, done=3) as bar:
        bar.update(2)
        bar.update(4)
    said = capsys.readouterr().err
    assert "\r" not in said
    first, *_, last = said.splitlines()
    assert first.startswith(("3 of 9 sentences, ", "5 of 9 sentences, "))
    assert last.startswith("9 of 9 sentences, ")
    assert last.endswith(" left")


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress(" sentences", 2) as bar:
        bar.update(2)
    assert "2/2" in screen.said
    assert "\r" in screen.said


def test_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress(" sentences", 2, silent=True) as bar:
        bar.update(2)
    assert screen.said == ""
