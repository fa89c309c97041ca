"""A training that tables rest on: what its history and its record say, how fast it was."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_json, write_json
from convs2s.training.history import EpochRecord, TrainingMachine, read_history

SECONDS_PER_HOUR = 3600


@with_config(ConfigDict(extra="allow"))
class _Manifest(TrainingMachine, total=False):
    packages: Mapping[str, object]


@with_config(ConfigDict(extra="allow"))
class _Record(TypedDict, total=False):
    manifest: _Manifest


@dataclass(frozen=True)
class Hours:
    """Core-hours of CPUs and GPU-hours for which devices were held, or are expected to be."""

    cores: float = 0.0
    gpus: float = 0.0

    def __add__(self, other: "Hours") -> "Hours":
        return Hours(self.cores + other.cores, self.gpus + other.gpus)

    def __mul__(self, factor: float) -> "Hours":
        return Hours(self.cores * factor, self.gpus * factor)


@dataclass(frozen=True)
class Training:
    """A training of one seed that cells rest on; history and training.json are empty if missing."""

    task: str
    model: str
    run: str
    folder: Path
    epochs: tuple[EpochRecord, ...]
    summary: _Record

    @property
    def anchor(self) -> str:
        """The name by which the report's links find it."""
        return f"run-{self.task}-{self.model}-{self.run}"

    @property
    def manifest(self) -> _Manifest:
        """What made it: versions, machine, recipe."""
        return self.summary.get("manifest", {})

    @property
    def seconds(self) -> float | None:
        """How long the updates of its epochs took, over all attempts; None without a history."""
        timed = [epoch for epoch in self.epochs if epoch.tokens_per_second]
        return sum(epoch.tokens / epoch.tokens_per_second for epoch in timed) if timed else None

    @property
    def hours(self) -> Hours | None:
        """Time times GPUs, or without one times threads; None before its end, or if unrecorded."""
        total = None
        for epoch in self.epochs if self.summary else ():
            machine: TrainingMachine = epoch.machine or self.manifest
            if epoch.tokens_per_second and "workers" in machine:
                hours = epoch.tokens / epoch.tokens_per_second / SECONDS_PER_HOUR
                held = hours * _devices(machine)
                total = total or Hours()
                total += Hours(gpus=held) if "gpu" in machine else Hours(cores=held)
        return total


def read_training(
    task: str, model: str, run: str, folder: Path, exists: Callable[[Path], bool] = Path.is_file
) -> Training:
    """Read what there is of a training; ``exists`` says of a file whether it can be read."""
    history = folder / "history.jsonl"
    record = folder / "training.json"
    epochs = read_history(history).epochs if exists(history) else ()
    summary = read_record(record) if exists(record) else _Record()
    return Training(task, model, run, folder, epochs, summary)


def measure_training_speed(
    *, history: Path, training: Path, output: Path, manifest: Mapping[str, object]
) -> None:
    """Write how fast a training was, and its hours.

    The speed is the median over the epochs of target tokens per second (section 5.5),
    as an epoch in which the machine was busy otherwise says nothing of the network.
    Of a training on several machines it is that of the last one.
    The hours are those of all updates at their machine's rate, times GPUs, or without one threads;
    if it was on CPUs and on GPUs, they are those of the last kind.
    ``training`` is the record whose manifest names the device where the epochs do not.
    """
    epochs = [epoch for epoch in read_history(history).epochs if epoch.tokens_per_second]
    if not epochs:
        raise UserError(f"{history}: no epoch, so there is no speed; train for at least one epoch")
    record = read_record(training)
    machines: dict[str, tuple[TrainingMachine, list[EpochRecord]]] = {}
    with failures_of_file(str(training), "no record of a training: train again"):
        for epoch in epochs:
            last = epoch.machine or record["manifest"]
            last_name = (
                f"{last.get('gpu') or last['processor']}, "
                f"workers: {last['workers']}, CPU threads of each: {last['threads']}"
            )
            machines.setdefault(last_name, (last, []))[1].append(epoch)
    hours = 0.0
    rates: dict[str, float] = {}
    for name, (machine, its_epochs) in machines.items():
        if ("gpu" in machine) == ("gpu" in last):
            rates[name] = statistics.median(epoch.tokens_per_second for epoch in its_epochs)
            seconds = sum(epoch.tokens for epoch in its_epochs) / rates[name]
            hours += seconds / SECONDS_PER_HOUR * _devices(machine)
    speed = {"score": rates[last_name], "signature": f"median over epochs, {last_name}"}
    held = {"score": hours, "signature": "; ".join(rates)}
    measured = {"target_tokens_per_second": speed, "device_hours": held}
    write_json(output, {**measured, "manifest": manifest})


def _devices(machine: TrainingMachine) -> int:
    return machine["workers"] * (1 if "gpu" in machine else machine["threads"])


def read_record(path: Path) -> _Record:
    """Read what a training leaves; a UserError says that the JSON file is no such record."""
    with failures_of_file(str(path), "no record of a training: train again"):
        return TypeAdapter(_Record).validate_python(read_json(path))
