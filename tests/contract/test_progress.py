"""A bar where somebody watches, a line a minute where nobody does."""

import io
import re
import sys

import pytest

from convs2s.decoding.progress import counted, progress


def test_a_log_has_lines_of_a_long_work_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(counted("abc", " lines")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("convs2s.decoding.progress.SECONDS_BETWEEN_LINES", 1e-9)
    with progress(" sentences", 9, done=3) as bar:
        bar.update(2)
        bar.update(4)
    said = capsys.readouterr().err
    assert re.fullmatch(r"([359] of 9 sentences, .* left\n)+", said)
    assert "\n9 of 9" in said


def test_a_terminal_has_a_bar_unless_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    for silent in (False, True):
        screen = io.StringIO()
        monkeypatch.setattr(screen, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stderr", screen)
        with progress(" sentences", 2, silent=silent) as bar:
            bar.update(2)
        assert ("2/2" in screen.getvalue()) == (not silent)
