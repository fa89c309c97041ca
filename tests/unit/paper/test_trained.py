"""The speed of a training: the median of its epochs, and the device that they ran on."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.files.text import read_json, write_lines
from convs2s.paper.trained import measure_training_speed, read_training
from convs2s.training.history import EpochRecord, TrainingMachine, without_absent


def measure(
    folder: Path,
    rates: list[int],
    machines: Sequence[TrainingMachine | None] = (),
    **machine: object,
) -> dict[str, Any]:
    """Measure a training with epochs of such rates, on such machines where the record has none."""
    epoch = EpochRecord(1, 9, 0.25, 3.0, 3.0, 20.0, 100, 1)
    rows = [
        without_absent(replace(epoch, tokens_per_second=rate, machine=made))
        for rate, made in zip_longest(rates, machines)
    ]
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


def test_a_gpu_is_named_in_the_place_of_the_processor(tmp_path: Path) -> None:
    measured = measure(tmp_path, [1, 2], gpu="an H100", workers=8)
    assert (
        "epochs, an H100, workers: 8"
        in measured["target_tokens_per_second"]["signature"]
    )


def test_hours_count_threads_or_gpus(tmp_path: Path) -> None:
    tokens = EpochRecord(1, 9, 0.25, 3.0, 3.0, 20.0, 100, 1).tokens
    hours = 3 * tokens / 20 / 3600
    on_cpu, on_gpus = (
        measure(tmp_path, [1, 20, 30], (), **machine)["device_hours"]
        for machine in ({}, {"gpu": "an H100", "workers": 8})
    )
    assert on_cpu["score"] == pytest.approx(2 * hours)
    assert on_gpus["score"] == pytest.approx(8 * hours)
    assert on_cpu["signature"] == "a processor, workers: 1, CPU threads of each: 2"


def test_epochs_on_another_machine_count_by_its_rate_and_devices(
    tmp_path: Path,
) -> None:
    """A training that was killed may resume elsewhere, and be exported on a third machine."""
    one, other = (
        TrainingMachine(workers=8, gpu="a V100"),
        TrainingMachine(workers=2, gpu="an H100"),
    )
    for machine in one, other:
        machine["threads"] = 4
    measured = measure(tmp_path, [10, 10, 50], [one, one, other])
    assert measured["target_tokens_per_second"] == {
        "score": 50,
        "signature": "median over epochs, an H100, workers: 2, CPU threads of each: 4",
    }
    assert measured["device_hours"] == {
        "score": pytest.approx((8 * 200 / 10 + 2 * 100 / 50) / 3600),
        "signature": "a V100, workers: 8, CPU threads of each: 4; "
        "an H100, workers: 2, CPU threads of each: 4",
    }
    training = read_training("task", "model", "seed1", tmp_path)
    assert training.hours is not None
    assert training.hours.cores == 0
    assert training.hours.gpus == pytest.approx((8 * 200 / 10 + 2 * 100 / 50) / 3600)


def test_a_speed_is_of_the_machine_that_a_training_ends_on(tmp_path: Path) -> None:
    """It came back there; its hours on a CPU are no GPU-hours."""
    gpu, cpu = (
        TrainingMachine(workers=1, gpu="an H100"),
        TrainingMachine(workers=1, processor="x"),
    )
    for machine in gpu, cpu:
        machine["threads"] = 16
    measured = measure(tmp_path, [10, 1, 20], [gpu, cpu, gpu])
    assert measured["target_tokens_per_second"]["score"] == 15
    assert measured["device_hours"] == {
        "score": pytest.approx(200 / 15 / 3600),
        "signature": "an H100, workers: 1, CPU threads of each: 16",
    }


def test_a_training_without_an_epoch_has_no_speed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"history\.jsonl: no epoch"):
        measure(tmp_path, [])
