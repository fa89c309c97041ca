"""The speed and the hours of a training: its epochs, and the devices that they ran on."""

from pathlib import Path

import pytest

from convs2s.files.text import read_json
from convs2s.paper.trained import measure_training_speed, read_training
from tests.support.refusals import refuses, rows

EPOCH = """\
{"epoch": 1, "updates": 9, "learning_rate": 0.25, "train_loss": 3.0, "valid_loss": 3.0, \
"valid_perplexity": 20.0, "tokens": 100, "tokens_per_second": RATE, "machine": MACHINE}
"""
MACHINES = {
    "v100": '{"workers": 8, "threads": 4, "gpu": "a V100"}',
    "h100": '{"workers": 2, "threads": 4, "gpu": "an H100"}',
    "cpu": '{"workers": 1, "threads": 16, "processor": "x"}',
    "unnamed": "null",
}
RECORD = '{"manifest": {"workers": 1, "threads": 2, "processor": "a processor"}}'
NAMES = {
    "v100": "a V100, workers: 8, CPU threads of each: 4",
    "h100": "an H100, workers: 2, CPU threads of each: 4",
    "unnamed": "a processor, workers: 1, CPU threads of each: 2",
}


def measure(folder: Path, epochs: str) -> None:
    """Measure epochs of 100 tokens, such as ``20 h100``; the record has the unnamed machine."""
    text = ""
    for epoch in filter(None, epochs.split(", ")):
        rate, machine = epoch.split()
        text += EPOCH.replace("RATE", rate).replace("MACHINE", MACHINES[machine])
    (folder / "history.jsonl").write_text(text + '{"stop": "the end"}\n')
    (folder / "training.json").write_text(RECORD)
    measure_training_speed(
        history=folder / "history.jsonl",
        training=folder / "training.json",
        output=folder / "training.speed.json",
        manifest={},
    )


# The columns of seconds are those of the devices at the median rate, and those that CPUs and GPUs
# took. In the first row a busy hour does not count, but it was taken; then a training was killed,
# and resumed elsewhere; the last one came back, and its hours on a CPU are no GPU-hours.
TRAININGS = """
1 unnamed, 20 unnamed, 30 unnamed => 20 => 30 => unnamed => 216.66667 => 0
10 v100, 10 v100, 50 h100 => 50 => 164 => v100 h100 => 0 => 164
10 h100, 1 cpu, 20 h100 => 15 => 26.666667 => h100 => 1600 => 30
"""


def test_hours_are_of_the_devices_and_speed_of_the_last_machine(tmp_path: Path) -> None:
    for epochs, speed, seconds, of, cores, gpus in rows(TRAININGS):
        measure(tmp_path, epochs)
        machines = [NAMES[name] for name in of.split()]
        signature = f"median over epochs, {machines[-1]}"
        hours = pytest.approx(float(seconds) / 3600)
        assert read_json(tmp_path / "training.speed.json") == {
            "target_tokens_per_second": {"score": float(speed), "signature": signature},
            "device_hours": {"score": hours, "signature": "; ".join(machines)},
            "manifest": {},
        }
        took = read_training("task", "model", "seed1", tmp_path).hours
        assert took is not None
        found = (took.cores * 3600, took.gpus * 3600)
        assert found == pytest.approx((float(cores), float(gpus)))
    refuses("history.jsonl ... no epoch", measure, tmp_path, "")
