"""The speed and the hours of a training: its epochs, and the devices that they ran on."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.files.text import read_json, write_lines
from convs2s.paper.trained import Hours, measure_training_speed, read_training
from convs2s.training.history import EpochRecord, TrainingMachine, without_absent
from tests.support.refusals import refusal, says

CPU = TrainingMachine(workers=1, threads=16, processor="x")
V100 = TrainingMachine(workers=8, threads=4, gpu="a V100")
H100 = TrainingMachine(workers=2, threads=4, gpu="an H100")
OF_RECORD = "a processor, workers: 1, CPU threads of each: 2"
OF_V100 = "a V100, workers: 8, CPU threads of each: 4"
OF_H100 = "an H100, workers: 2, CPU threads of each: 4"


def write_training(
    folder: Path, rates: Sequence[int], machines: Sequence[TrainingMachine | None]
) -> dict[str, Path]:
    """Write epochs of 100 tokens at such rates, and a record that names its own machine."""
    epoch = EpochRecord(1, 9, 0.25, 3.0, 3.0, 20.0, 100, 1)
    rows = [
        without_absent(replace(epoch, tokens_per_second=rate, machine=machine))
        for rate, machine in zip(rates, machines, strict=True)
    ]
    names = ("history.jsonl", "training.json", "training.speed.json")
    history, training, output = (folder / name for name in names)
    write_lines(history, map(json.dumps, [*rows, {"stop": "the end"}]))
    manifest = {"threads": 2, "workers": 1, "processor": "a processor"}
    training.write_text(json.dumps({"manifest": manifest}), "utf-8")
    return {"history": history, "training": training, "output": output}


@pytest.mark.parametrize(
    ("rates", "machines", "speed", "of_speed", "seconds", "of_hours", "took"),
    [
        # The median, in which a busy hour does not count; but it was taken.
        (
            [1, 20, 30],
            [None] * 3,
            20,
            OF_RECORD,
            2 * 300 / 20,
            OF_RECORD,
            Hours(cores=2 * (100 + 100 / 20 + 100 / 30)),
        ),
        # Killed, and resumed elsewhere.
        (
            [10, 10, 50],
            [V100, V100, H100],
            50,
            OF_H100,
            8 * 200 / 10 + 2 * 100 / 50,
            f"{OF_V100}; {OF_H100}",
            Hours(gpus=8 * 200 / 10 + 2 * 100 / 50),
        ),
        # It came back; hours on a CPU are no GPU-hours.
        (
            [10, 1, 20],
            [H100, CPU, H100],
            15,
            OF_H100,
            2 * 200 / 15,
            OF_H100,
            Hours(16 * 100, 2 * (100 / 10 + 100 / 20)),
        ),
    ],
)
def test_hours_are_of_the_devices_and_speed_of_the_last_machine(
    tmp_path: Path,
    rates: list[int],
    machines: list[TrainingMachine | None],
    speed: float,
    of_speed: str,
    seconds: float,
    of_hours: str,
    took: Hours,
) -> None:
    files = write_training(tmp_path, rates, machines)
    measure_training_speed(**files, manifest={})
    assert read_json(files["output"]) == {
        "target_tokens_per_second": {
            "score": speed,
            "signature": f"median over epochs, {of_speed}",
        },
        "device_hours": {"score": pytest.approx(seconds / 3600), "signature": of_hours},
        "manifest": {},
    }
    hours = read_training("task", "model", "seed1", tmp_path).hours
    assert hours is not None
    assert hours.cores == pytest.approx(took.cores / 3600)
    assert hours.gpus == pytest.approx(took.gpus / 3600)


def test_a_training_without_an_epoch_has_no_speed(tmp_path: Path) -> None:
    files = write_training(tmp_path, [], [])
    said = refusal(measure_training_speed, **files, manifest={})
    says(said, "history.jsonl", "no epoch")
