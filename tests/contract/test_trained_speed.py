"""The speed and the hours of a training: its epochs, and the devices that they ran on."""

import json
from pathlib import Path

import pytest

from convs2s.files.text import read_json, write_lines
from convs2s.paper.trained import measure_training_speed, read_training
from tests.support.refusals import refusal, rows, says

MACHINES = {
    "v100": {"workers": 8, "threads": 4, "gpu": "a V100"},
    "h100": {"workers": 2, "threads": 4, "gpu": "an H100"},
    "cpu": {"workers": 1, "threads": 16, "processor": "x"},
}
NAMES = {
    "v100": "a V100, workers: 8, CPU threads of each: 4",
    "h100": "an H100, workers: 2, CPU threads of each: 4",
    "record": "a processor, workers: 1, CPU threads of each: 2",
}


def write_training(folder: Path, epochs: str) -> dict[str, Path]:
    """Write epochs of 100 tokens, such as ``20 h100``, and a record that names its own machine."""
    figures = dict.fromkeys(("train_loss", "valid_loss", "valid_perplexity"), 3.0)
    figures |= {"epoch": 1, "updates": 9, "learning_rate": 0.25, "tokens": 100}
    lines = []
    for epoch in epochs.split(", ") if epochs else ():
        rate, machine = epoch.split()
        own = {"machine": MACHINES[machine]} if machine in MACHINES else {}
        lines.append(figures | {"tokens_per_second": int(rate)} | own)
    names = ("history.jsonl", "training.json", "training.speed.json")
    history, training, output = (folder / name for name in names)
    write_lines(history, map(json.dumps, [*lines, {"stop": "the end"}]))
    manifest = {"threads": 2, "workers": 1, "processor": "a processor"}
    training.write_text(json.dumps({"manifest": manifest}), "utf-8")
    return {"history": history, "training": training, "output": output}


# The columns of seconds are those of the devices at the median rate, and those that CPUs and GPUs
# took. In the first row a busy hour does not count, but it was taken; then a training was killed,
# and resumed elsewhere; the last one came back, and its hours on a CPU are no GPU-hours.
TRAININGS = """
1 record, 20 record, 30 record => 20 => 30 => record => 216.66667 => 0
10 v100, 10 v100, 50 h100 => 50 => 164 => v100 h100 => 0 => 164
10 h100, 1 cpu, 20 h100 => 15 => 26.666667 => h100 => 1600 => 30
"""


def test_hours_are_of_the_devices_and_speed_of_the_last_machine(
    tmp_path: Path,
) -> None:
    for epochs, speed, seconds, of, cores, gpus in rows(TRAININGS):
        files = write_training(tmp_path, epochs)
        measure_training_speed(**files, manifest={})
        machines = [NAMES[name] for name in of.split()]
        signature = f"median over epochs, {machines[-1]}"
        hours = pytest.approx(float(seconds) / 3600)
        assert read_json(files["output"]) == {
            "target_tokens_per_second": {"score": float(speed), "signature": signature},
            "device_hours": {"score": hours, "signature": "; ".join(machines)},
            "manifest": {},
        }
        took = read_training("task", "model", "seed1", tmp_path).hours
        assert took is not None
        found = (took.cores * 3600, took.gpus * 3600)
        assert found == pytest.approx((float(cores), float(gpus)))


def test_a_training_without_an_epoch_has_no_speed(tmp_path: Path) -> None:
    files = write_training(tmp_path, "")
    said = refusal(measure_training_speed, **files, manifest={})
    says(said, "history.jsonl", "no epoch")
