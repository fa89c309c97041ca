"""The budget of a run, printed before it starts, and the reasons why the run cannot fit."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.costs.budget import Budget, TrainingCost, budgets, levels
from convs2s.costs.exhibits import Cost, PaperCosts, costs
from convs2s.costs.roofline import CalculatedSpeed, Estimate, Speed, estimates
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.paper.cells import Cell
from convs2s.paper.trained import SECONDS_PER_HOUR
from convs2s.scoring.reports.layout import text_templates
from convs2s.scoring.text_table import underlined


@dataclass(frozen=True)
class TrainingRow:
    """What the missing trainings of a model take on some devices."""

    cost: TrainingCost
    estimate: Estimate
    # The hours of one training, or of an epoch if the number of epochs is not known; None if the
    # tokens of an epoch are not known.
    hours: float | None
    # Device-hours of all missing trainings, or of an epoch of each.
    device_hours: float
    is_alone: bool  # True for one GPU or the CPU, False for several GPUs
    # How many times faster several trainings are if they run side by side, each on one device, than
    # if they run one after another, each on all devices.
    gain: float


@dataclass(frozen=True)
class Machine:
    """The disk space and the memory of this machine."""

    results: int  # bytes that are free for results
    downloads: int  # bytes that are free for downloads
    is_one_disk: bool  # whether results and downloads share that space
    memory: int | None  # bytes of memory; None if the jobs run on other machines


def inspect_machine(scale: Scale, *, is_local: bool) -> Machine:
    """Return the disk space that is free for a scale's folders, and the memory.

    The memory is None if jobs do not run on this machine (``is_local`` is False).
    """
    results = _existing(Path(scale.results_dir))
    downloads = _existing(Path(scale.downloads_dir))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        results=shutil.disk_usage(results).free,
        downloads=shutil.disk_usage(downloads).free,
        is_one_disk=results.stat().st_dev == downloads.stat().st_dev,
        memory=memory if is_local else None,
    )


def _existing(folder: Path) -> Path:
    """Return a folder, or the closest folder above it that exists."""
    folder = folder.absolute()
    while not folder.is_dir():
        folder = folder.parent
    return folder


def preflight(
    settings: Settings,
    *,
    tasks: Sequence[str],
    cells: Mapping[str, Sequence[Cell]],
    benchmarks: Path,
    is_local: bool,
    log: Path,
    requests: Iterable[str] = (),
) -> None:
    """Print the budget of a run, and write it to a log.

    Args:
        settings: the configuration.
        tasks: the tasks of the run.
        cells: name of each table or figure to fill -> its cells. The run trains the models of these
            cells, and those of the tasks' headlines.
        benchmarks: the folder of Snakemake's benchmark files.
        is_local: whether jobs run on this machine.
        log: the file to write.
        requests: lines to print after the budget. Computing a line may take long, so each is
            printed at once.

    Raises:
        UserError: the run cannot fit.
    """
    every_cell = list(chain.from_iterable(cells.values()))
    task_budgets = budgets(settings, tasks, every_cell)
    this_machine = inspect_machine(settings.scale, is_local=is_local)
    reasons = refusals(task_budgets, this_machine)
    speed = _speed(settings, task_budgets, measures=is_local and not reasons)
    exhibits = costs(settings, cells, benchmarks) if cells else None
    text = report(settings, task_budgets, this_machine, speed, exhibits)
    lines = text.splitlines()
    _print("\n".join(lines))
    for line in requests:
        _print(line)
        lines.append(line)
    if reasons:
        message = f"this run cannot fit: {'; '.join(reasons)}"
        write_lines(log, [*lines, f"error: {message}"])
        raise UserError(message)
    write_lines(log, lines)


def _print(text: str) -> None:
    """Print a text at once. If the reader of the output has ended, discard all further output."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader is for example `| head`. This job must not end with an error, because Snakemake
        # would then wait for it forever.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _speed(
    settings: Settings, task_budgets: Sequence[Budget], *, measures: bool
) -> Speed:
    """Return the speed of the device for which the budget states hours.

    The device is the GPU that `preflight_gpu` names, or else that of this machine, whose speed is
    measured. If ``measures`` is False or no training is missing, nothing is measured, and the first
    GPU of config/costs.yaml takes the place of this machine.
    """
    gpus = {gpu.name: gpu for gpu in settings.costs.gpus}
    works = []
    for budget in task_budgets:
        works += [cost.work for cost in budget.trainings if cost.missing]
    asked = settings.options.preflight_gpu
    if asked or not measures or not works:
        gpu = gpus[asked] if asked else settings.costs.gpus[0]
        return CalculatedSpeed(gpu, settings.costs)
    # Imported here, because these modules import torch.
    from convs2s.costs.measured import MeasuredSpeed
    from convs2s.devices import held_device

    kept = Path(settings.scale.results_dir) / "measured_updates.json"
    with held_device(settings.options.device, waits=False) as device:
        return MeasuredSpeed(works, settings.costs, device, kept)


def training_rows(budget: Budget, speed: Speed) -> Iterator[TrainingRow]:
    """Yield what a task's missing trainings take, on one device and on several."""
    for cost in budget.trainings:
        if not cost.missing:
            continue
        alone = None
        for estimate in estimates(speed, cost.work):
            alone = alone or estimate  # the first estimate is the one for one device
            speedup = estimate.rate / alone.rate
            hours = None
            if cost.epoch_tokens is not None:
                # If the number of epochs is not known, the hours are those of one epoch.
                tokens = cost.epoch_tokens * (cost.epochs or 1)
                hours = tokens / estimate.rate / SECONDS_PER_HOUR
            device_hours = cost.missing * estimate.devices * (hours or 0)
            yield TrainingRow(
                cost,
                estimate,
                hours,
                device_hours,
                is_alone=estimate is alone,
                gain=estimate.devices / alone.devices / speedup,
            )


def report(
    settings: Settings,
    task_budgets: Sequence[Budget],
    machine: Machine,
    speed: Speed,
    exhibits: PaperCosts | None = None,
) -> str:
    """Return a text with the budget of each task, their total, and what this machine has.

    Args:
        settings: the configuration.
        task_budgets: the budget of each task.
        machine: the disk space and memory of this machine.
        speed: the speed of the device for which hours are stated.
        exhibits: the costs of tables and figures.
    """
    costs_by_name: dict[str, Cost] = {}
    if exhibits:
        costs_by_name = {**exhibits.exhibits, "all, each training once": exhibits.total}
    rows = {budget.task: list(training_rows(budget, speed)) for budget in task_budgets}
    templates = text_templates("convs2s.costs")
    templates.globals["levels"] = levels
    templates.filters |= {
        "amount": _amount,
        "hours": _hours,
        "number": "{:,}".format,
        "underlined": lambda title: "\n".join(underlined(title)),
    }
    return templates.get_template("preflight.txt.j2").render(
        exhibits=costs_by_name,
        budgets=task_budgets,
        scale=settings.options.scale,
        machine=machine,
        downloads=_all_downloads(task_budgets),
        disk=_disk(task_budgets),
        memory=_memory(task_budgets),
        rows=rows,
        speed=speed,
        microseconds=settings.costs.launch_microseconds.value,
    )


def refusals(task_budgets: Sequence[Budget], machine: Machine) -> list[str]:
    """Return the reasons why a run cannot fit; an empty list if none is known."""
    reasons = []
    for budget in task_budgets:
        if budget.missing:
            reasons.append(
                f"{budget.task} needs {', '.join(budget.missing)}, which you have to put there "
                f"(config/tasks/{budget.task}.yaml says what they are)"
            )
    disk = _disk(task_budgets)
    incoming = sum(size or 0 for size in _all_downloads(task_budgets).values())
    needs = [
        ("results", disk, machine.results),
        ("downloads", incoming, machine.downloads),
    ]
    if machine.is_one_disk:
        needs = [("results and downloads", disk + incoming, machine.results)]
    for files, needed, free in needs:
        if needed > free:
            reasons.append(
                f"{files} take {_amount(needed)} of disk, but {_amount(free)} are free: make "
                "space, point results_dir and downloads_dir of the scale elsewhere, or choose "
                "fewer `tasks`"
            )
    memory = _memory(task_budgets)
    if machine.memory is not None and memory > machine.memory:
        reasons.append(
            f"the largest job takes {_amount(memory)} of memory, but this machine has "
            f"{_amount(machine.memory)}: use another machine, fewer `gpus`, or align fewer pairs"
        )
    return reasons


def _all_downloads(task_budgets: Sequence[Budget]) -> dict[str, int | None]:
    """Return path -> bytes of every file that is still to be downloaded; None if not known.

    A file that several tasks need is there once.
    """
    return {
        path: size for budget in task_budgets for path, size in budget.downloads.items()
    }


def _disk(task_budgets: Sequence[Budget]) -> float:
    """Return the further bytes of disk that the results need, if all tasks run at the same time."""
    return sum(max(0, budget.disk - budget.present) for budget in task_budgets)


def _memory(task_budgets: Sequence[Budget]) -> float:
    """Return the bytes of memory that the largest job of all tasks takes."""
    return max(
        (stage.memory for budget in task_budgets for stage in budget.stages), default=0
    )


def _amount(size: float) -> str:
    """Format bytes as MB or GB, which are powers of ten here, as on the labels of disks."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"


def _hours(hours: float) -> str:
    """Format hours with one decimal, or with two if they are more than 0 and less than 0.1."""
    return f"{hours:.2f}" if 0 < hours < 0.1 else f"{hours:,.1f}"
