"""What a log says of a running epoch."""

import pytest

from convs2s.training import epoch_progress
from convs2s.training.epoch_progress import EpochProgress


def test_a_line_counts_all_updates_that_were_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(epoch_progress, "QUIET_SECONDS", 0.0)
    with EpochProgress(2, 100, 10, silent=False) as progress:
        assert progress.is_due()
        progress.advance(50, loss=2.5, tokens=4000, norm=0.25)
    said = capsys.readouterr().err
    assert "epoch 2" in said
    assert "60/100" in said
    assert "loss 2.500, gradient 0.250" in said


def test_a_silent_bar_is_due_as_well() -> None:
    with EpochProgress(1, 10, 0, silent=True) as progress:
        assert not progress.is_due()
        progress.advance(1, loss=1.0, tokens=1, norm=1.0)
