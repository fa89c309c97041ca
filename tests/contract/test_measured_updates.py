"""The speed of updates on this machine: measured once, kept, and used for larger networks."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.config.settings import Settings
from convs2s.costs import measured
from convs2s.costs.measured import MeasuredSpeed
from convs2s.costs.roofline import Work
from tests.support import tiny

SMALL = tiny.settings({"positions": {"maximum": 64}}, batch={"sentences": 8})
WORK = Work(SMALL.architecture, SMALL.training, (50, 50), tokens=240, threads=1)


def test_what_is_kept_is_not_measured_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "_SECONDS", 0)
    wider = SMALL.architecture.model_copy(update={"embedding": 64})
    works = [replace(WORK, architecture=wider), WORK]
    kept = tmp_path / "results/measured_updates.json"
    first = MeasuredSpeed(works, settings.costs, "cpu", kept)
    assert first.update(WORK, 240).seconds > 0
    # The smallest network alone was measured.
    ((key, figures),) = json.loads(kept.read_text("utf-8")).items()
    assert len(figures) == 2
    kept.write_text(json.dumps({key: [2, 0.5]}))
    again = MeasuredSpeed(works, settings.costs, "cpu", kept)
    assert again.update(WORK, 10).seconds == 2 + 0.5 * 10
    ratio = works[0].weights / WORK.weights
    assert again.update(works[0], 10).seconds == pytest.approx(7 * ratio)
