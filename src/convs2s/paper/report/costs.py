"""What the runs of each table took, as the trainings' histories have it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from convs2s.paper.report.exhibits import ShownTable
from convs2s.paper.report.recorded import Training

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class TableCost:
    """What the trainings of a table took.

    Attributes:
        trainings: how many it rests on.
        untimed: how many of them have no history here.
        core_hours: of those on CPUs, threads times time.
        gpu_hours: of those on GPUs, GPUs times time.
    """

    trainings: int
    untimed: int
    core_hours: float
    gpu_hours: float


def table_cost(table: ShownTable) -> TableCost:
    """Return what the trainings of a table took, each counted once."""
    return cost(run for row in table.rows for cell in row for run in cell.runs)


def cost(trained: Iterable[Training]) -> TableCost:
    """Return what trainings took, each counted once."""
    distinct = {run.anchor: run for run in trained}.values()
    return TableCost(
        trainings=len(distinct),
        untimed=sum(not _is_timed(run) for run in distinct),
        core_hours=sum(_hours(run, "core") for run in distinct),
        gpu_hours=sum(_hours(run, "gpu") for run in distinct),
    )


def environment(trained: Sequence[Training]) -> Mapping[str, Mapping[str, int]]:
    """Return, of what manifests say -> each value -> the number of trainings that it made."""
    found: dict[str, dict[str, int]] = {}
    for run in trained:
        for key, value in _made_with(run.manifest):
            counts = found.setdefault(key, {})
            counts[value] = counts.get(value, 0) + 1
    return found


def _hours(run: Training, unit: str) -> float:
    """Return the hours of a training on cores or on GPUs; 0 for one on the other kind."""
    if run.seconds is None or not _is_timed(run):
        return 0.0
    if unit != ("gpu" if _is_on_gpu(run) else "core"):
        return 0.0
    count = int(str(run.manifest["workers"]))
    if unit == "core":
        count *= int(str(run.manifest["threads"]))
    return run.seconds * count / _SECONDS_PER_HOUR


def _is_timed(run: Training) -> bool:
    return run.seconds is not None and "workers" in run.manifest


def _is_on_gpu(run: Training) -> bool:
    return "gpu" in run.manifest


def _made_with(manifest: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    for key in ("processor", "gpu", "system", "threads", "python", "convs2s", "revision"):
        if manifest.get(key) is not None:
            yield key, str(manifest[key])
    packages = manifest.get("packages", {})
    assert isinstance(packages, Mapping)
    yield from ((name, str(version)) for name, version in packages.items() if version)
