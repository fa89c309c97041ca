"""The speed of a training: the median of its epochs, and the device that they ran on."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.files.text import read_json, write_lines
from convs2s.paper.trained import measure_training_speed
from convs2s.training.history import EpochRecord, without_absent


def measure(folder: Path, rates: list[int], **machine: object) -> dict[str, Any]:
    """Measure a training with epochs of such rates."""
    epoch = EpochRecord(1, 9, 0.25, 3.0, 3.0, 20.0, 100, 1)
    rows = [without_absent(replace(epoch, tokens_per_second=rate)) for rate in rates]
    write_lines(folder / "history.jsonl", map(json.dumps, [*rows, {"stop": "the end"}]))
    manifest = {"threads": 2, "workers": 1, "processor": "a processor", **machine}
    write_lines(folder / "training.json", [json.dumps({"manifest": manifest})])
    measure_training_speed(
        history=folder / "history.jsonl",
        training=folder / "training.json",
        output=folder / "training.speed.json",
        manifest={},
    )
    written = read_json(folder / "training.speed.json")
    assert isinstance(written, dict)
    return written


def test_the_speed_is_the_median_of_the_epochs(tmp_path: Path) -> None:
    speed = measure(tmp_path, [100, 3000, 3100])["target_tokens_per_second"]
    assert speed["score"] == 3000
    machine = "a processor, workers: 1, CPU threads of each: 2"
    assert speed["signature"] == f"median over epochs, {machine}"


def test_the_curve_has_every_epoch(tmp_path: Path) -> None:
    """Also one too short for a rate."""
    assert measure(tmp_path, [0, 100, 200])["curve"] == [20.0] * 3


def test_a_gpu_is_named_in_the_place_of_the_processor(tmp_path: Path) -> None:
    measured = measure(tmp_path, [1, 2], gpu="an H100", workers=8)
    assert "epochs, an H100, workers: 8" in measured["target_tokens_per_second"]["signature"]


def test_hours_count_threads_or_gpus(tmp_path: Path) -> None:
    tokens = EpochRecord(1, 9, 0.25, 3.0, 3.0, 20.0, 100, 1).tokens
    hours = 3 * tokens / 20 / 3600
    on_cpu, on_gpus = (
        measure(tmp_path, [1, 20, 30], **machine)["device_hours"]
        for machine in ({}, {"gpu": "an H100", "workers": 8})
    )
    assert on_cpu["score"] == pytest.approx(2 * hours)
    assert on_gpus["score"] == pytest.approx(8 * hours)
    assert on_cpu["signature"] == "a processor, workers: 1, CPU threads of each: 2"


def test_a_training_without_an_epoch_has_no_speed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"history\.jsonl: no epoch"):
        measure(tmp_path, [])
