"""A training whose model gave scores of the tables: its history, record, speed and hours."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_checked, write_json
from convs2s.training.history import EpochRecord, TrainingMachine, read_history

SECONDS_PER_HOUR = 3600

_NO_RECORD = "not the record of a training; train again"


@with_config(ConfigDict(extra="allow"))
class _Manifest(TrainingMachine, total=False):
    """The checked part of a training's manifest; other keys are kept as they are."""

    packages: Mapping[str, object]


@with_config(ConfigDict(extra="allow"))
class _Record(TypedDict, total=False):
    """The checked part of training.json; other keys are kept as they are."""

    manifest: _Manifest


@dataclass(frozen=True)
class Hours:
    """Core-hours and GPU-hours: how long devices were occupied, or are expected to be."""

    cores: float = 0.0
    gpus: float = 0.0

    def __add__(self, other: "Hours") -> "Hours":
        return Hours(self.cores + other.cores, self.gpus + other.gpus)


@dataclass(frozen=True)
class Training:
    """A training of one seed whose model gave scores of the tables."""

    task: str
    model: str
    run: str
    epochs: tuple[EpochRecord, ...]  # from history.jsonl; empty if the file is missing
    summary: _Record  # training.json; empty if the file is missing

    @property
    def anchor(self) -> str:
        """The HTML id of the training in the report."""
        return f"run-{self.task}-{self.model}-{self.run}"

    @property
    def manifest(self) -> _Manifest:
        """The versions, machine and recipe of the training; empty if they are not recorded."""
        return self.summary.get("manifest", {})

    @property
    def seconds(self) -> float | None:
        """The time of all updates in all attempts; None if no epoch has a recorded speed."""
        timed = [epoch for epoch in self.epochs if epoch.tokens_per_second]
        if not timed:
            return None
        return sum(epoch.tokens / epoch.tokens_per_second for epoch in timed)

    @property
    def hours(self) -> Hours | None:
        """The hours of all epochs that have a recorded speed and machine; None if there are none.

        The hours of an epoch are the time of its updates, multiplied by the number of GPUs, or by
        the number of CPU threads if the epoch ran without a GPU. Until the training ends,
        training.json is missing, and the hours are None.
        """
        if not self.summary:
            return None
        total = None
        for epoch in self.epochs:
            # An epoch that names no machine ran on the machine of the manifest.
            machine: TrainingMachine = epoch.machine or self.manifest
            if not epoch.tokens_per_second or "workers" not in machine:
                continue
            hours = epoch.tokens / epoch.tokens_per_second / SECONDS_PER_HOUR
            hours *= _devices(machine)
            of_epoch = Hours(gpus=hours) if "gpu" in machine else Hours(cores=hours)
            total = (total or Hours()) + of_epoch
        return total


def read_training(
    task: str,
    model: str,
    run: str,
    folder: Path,
    exists: Callable[[Path], bool] = Path.is_file,
) -> Training:
    """Read the history and the record of a training.

    A file for which ``exists`` returns False is not read, and its part of the training is empty.

    Raises:
        UserError: a file is damaged.
    """
    history = folder / "history.jsonl"
    record = folder / "training.json"
    epochs = read_history(history).epochs if exists(history) else ()
    summary = read_record(record) if exists(record) else _Record()
    return Training(task, model, run, epochs, summary)


def measure_training_speed(
    *,
    history: Path,
    training: Path,
    output: Path,
    manifest: Mapping[str, object],
) -> None:
    """Write the speed of a training, and its hours.

    The speed is in target tokens per second (section 5.5). It is the median over the epochs, so
    that an epoch in which the machine was busy with other work hardly changes the speed. If the
    training ran on several machines, the speed is that of the last one.

    The hours are the time of all updates at the median speed of their machine, multiplied by the
    number of GPUs, or by the number of CPU threads if there was no GPU. If the training ran on
    machines with and without GPUs, only the hours on machines like the last one count.
    `Training.hours` differs: it is the time that the updates really took, on all machines.

    ``training`` is training.json. Its manifest names the machine of epochs that do not name one.

    Raises:
        UserError: the history has no finished epoch, or a file is damaged.
    """
    epochs = [
        epoch for epoch in read_history(history).epochs if epoch.tokens_per_second
    ]
    if not epochs:
        raise UserError(
            f"{history}: no epoch, so there is no speed; train for at least one epoch"
        )
    record = read_record(training)
    machines: dict[str, TrainingMachine] = {}  # name in the signature -> machine
    epochs_on: dict[str, list[EpochRecord]] = {}  # name of a machine -> its epochs
    # `read_record` accepts a machine with missing keys; this block refuses it.
    with failures_of_file(training, _NO_RECORD):
        for epoch in epochs:
            machine = epoch.machine or record["manifest"]
            name = (
                f"{machine.get('gpu') or machine['processor']}, "
                f"workers: {machine['workers']}, CPU threads of each: {machine['threads']}"
            )
            machines.setdefault(name, machine)
            epochs_on.setdefault(name, []).append(epoch)
        # After the loop, ``name`` and ``machine`` are those of the last epoch.
        last_name = name
        last_has_gpu = "gpu" in machine
    hours = 0.0
    rates: dict[str, float] = {}
    for name, machine in machines.items():
        if ("gpu" in machine) != last_has_gpu:
            continue
        rates[name] = statistics.median(
            epoch.tokens_per_second for epoch in epochs_on[name]
        )
        seconds = sum(epoch.tokens for epoch in epochs_on[name]) / rates[name]
        hours += seconds / SECONDS_PER_HOUR * _devices(machine)
    speed = {"score": rates[last_name], "signature": f"median over epochs, {last_name}"}
    device_hours = {"score": hours, "signature": "; ".join(rates)}
    measured = {"target_tokens_per_second": speed, "device_hours": device_hours}
    write_json(output, {**measured, "manifest": manifest})


def _devices(machine: TrainingMachine) -> int:
    """Return the number of devices whose hours count: GPUs, or CPU threads if there is no GPU."""
    if "gpu" in machine:
        return machine["workers"]  # each worker has one GPU
    return machine["workers"] * machine["threads"]


def read_record(path: Path) -> _Record:
    """Read training.json.

    Raises:
        UserError: the file is not the record of a training.
    """
    return read_checked(path, _Record, _NO_RECORD)
