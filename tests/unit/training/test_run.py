"""What a training says at its end."""

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from convs2s.files.interrupts import Interrupted
from convs2s.training import run
from convs2s.training.data import TrainingData
from convs2s.training.run import log_end, train
from convs2s.training.trainer import Trainer
from tests.support import tiny


@pytest.mark.parametrize(
    ("best", "maximum", "advice"),
    [
        (4, 4, "raise training.maximum_epochs (4)"),
        (4, 3.5, "raise training.maximum_epochs (3.5)"),
        (4, 9, "lower training.schedule.minimum (0.0001)"),
        (4, None, "lower training.schedule.minimum (0.0001)"),
        (3, 4, None),
    ],
)
def test_advice_is_given_where_the_last_of_four_epochs_was_the_best(
    capsys: pytest.CaptureFixture[str],
    best: int,
    maximum: float | None,
    advice: str | None,
) -> None:
    schedule = SimpleNamespace(stop_reason="enough", best_epoch=best)
    trainer: Any = SimpleNamespace(
        state=SimpleNamespace(schedule=schedule, epoch=5),
        recipe=tiny.settings(maximum_epochs=maximum).training,
    )
    validation: Any = SimpleNamespace(source_use="the source is used")
    log_end(trainer, validation)
    best_is_last = (
        f"the last epoch was the best one, so more epochs would help; {advice}"
    )
    said = ["stopped: enough", best_is_last, "the source is used"]
    if advice is None:
        del said[1]
    assert capsys.readouterr().err.splitlines() == said


def test_the_export_is_no_part_of_the_last_epoch(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phases = []

    def note(*_: object) -> None:
        phases.append(
            json.loads((tmp_path / "state/progress.json").read_bytes())["phase"]
        )

    monkeypatch.setattr(run, "export", note)
    train(
        tiny.job(task, tmp_path / "model.safetensors", tiny.settings(maximum_epochs=1))
    )
    assert phases == ["exporting"]


@pytest.mark.parametrize(
    "step", [(TrainingData, "check_checksums"), (Trainer, "result")]
)
def test_a_signal_before_and_after_the_updates_is_said(
    task: Path, tmp_path: Path, step: tuple[object, str]
) -> None:
    def be_told(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    one = tiny.job(
        task, tmp_path / "model.safetensors", tiny.settings(maximum_epochs=1)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*step, be_told)
        with pytest.raises(Interrupted, match="SIGTERM"):
            train(one)
    said = json.loads((tmp_path / "state/progress.json").read_text("utf-8"))
    assert (said["phase"], said["why"]) == ("stopped", "Interrupted: SIGTERM")
    train(one)
    assert one.output.is_file()
