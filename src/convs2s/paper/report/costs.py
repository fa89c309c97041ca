"""What the runs of each table took, as the trainings' histories have it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from convs2s.paper.report.exhibits import ShownTable
from convs2s.paper.trained import Hours, Training


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
    timed = [run.hours for run in distinct if run.hours is not None]
    total = sum(timed, Hours())
    return TableCost(len(distinct), len(distinct) - len(timed), total.cores, total.gpus)


def environment(trained: Sequence[Training]) -> Mapping[str, Mapping[str, int]]:
    """Return, of what manifests say -> each value -> the number of trainings that it made."""
    found: dict[str, dict[str, int]] = {}
    for run in trained:
        for key, value in _made_with(run.manifest):
            counts = found.setdefault(key, {})
            counts[value] = counts.get(value, 0) + 1
    return found


def _made_with(manifest: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    for key in ("processor", "gpu", "system", "threads", "python", "convs2s", "revision"):
        if manifest.get(key) is not None:
            yield key, str(manifest[key])
    packages = manifest.get("packages", {})
    assert isinstance(packages, Mapping)
    yield from ((name, str(version)) for name, version in packages.items() if version)
