"""What a run will take, said before it starts, and the reasons why it cannot fit."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.costs import Costs
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.costs.budget import Budget, budgets, levels
from convs2s.costs.exhibits import Cost, PaperCosts, costs
from convs2s.costs.roofline import estimate
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.paper.cells import Cell
from convs2s.paper.trained import Hours
from convs2s.scoring.text_table import aligned, underlined


@dataclass(frozen=True)
class Machine:
    """Bytes free for results and for downloads; of memory, None where jobs run elsewhere."""

    results: int
    downloads: int
    is_one_disk: bool
    memory: int | None


def machine(scale: Scale, is_local: bool) -> Machine:
    """Return what this machine has for a scale's folders; ``is_local``: whether jobs run here."""
    results = _existing(scale.results_dir)
    downloads = _existing(scale.downloads_dir)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        results=shutil.disk_usage(results).free,
        downloads=shutil.disk_usage(downloads).free,
        is_one_disk=results.stat().st_dev == downloads.stat().st_dev,
        memory=memory if is_local else None,
    )


def _existing(folder: str) -> Path:
    """Return a folder, or the first one above it that is there."""
    path = Path(folder).absolute()
    while not path.is_dir():
        path = path.parent
    return path


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
    """Print the budget of tasks, and of the cells of the paper's tables that rest on them.

    ``cells`` are those of each table, whose runs are trained beside the tasks' headlines.
    ``benchmarks`` is the folder of Snakemake's benchmark files, ``is_local`` says whether jobs run
    on this machine, and ``log`` has the budget as well. The lines of ``requests`` follow it, and
    may take their time.

    Raises:
        UserError: the run cannot fit.
    """
    every_cell = [cell for table in cells.values() for cell in table]
    of_tasks = budgets(settings, tasks, every_cell)
    this_machine = machine(settings.scale, is_local)
    lines: list[str] = []
    total = None
    if cells:
        exhibits = costs(settings, cells, benchmarks)
        total = exhibits.total
        lines += exhibits_report(exhibits)
    lines += report(of_tasks, settings.options.scale, this_machine, total)
    lines += estimates(of_tasks, settings.costs)
    _say("\n".join(lines))
    for line in requests:
        _say(line)
        lines.append(line)
    reasons = refusals(of_tasks, this_machine)
    if not reasons:
        write_lines(log, lines)
        return
    message = f"this run cannot fit: {'; '.join(reasons)}"
    write_lines(log, [*lines, f"error: {message}"])
    raise UserError(message)


def _say(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader has gone (`| head`). Snakemake would wait for ever for a job that ends by it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exhibits_report(exhibits: PaperCosts) -> Iterator[str]:
    """Yield what the trainings of each table and figure are expected to take, and their sum."""
    header = [
        "",
        "trainings",
        "finished",
        "to come: core-hours",
        "GPU-hours",
        "not measured",
        "the papers' GPU-hours",
    ]
    rows = []
    for name, cost in [*exhibits.exhibits.items(), ("all, each training once", exhibits.total)]:
        row = [
            name,
            f"{cost.trainings:,}",
            f"{cost.finished:,}",
            _hours(cost.to_come.cores) if cost.to_come else "",
            _hours(cost.to_come.gpus) if cost.to_come else "",
            f"{cost.unknown:,}",
            _hours(cost.printed.hours) if cost.printed.stated else "",
        ]
        rows.append(row)
    yield from underlined("trainings of each table and figure")
    yield from aligned(header, rows)
    yield "to come: as measured here or in config/costs.yaml; the papers': of one training of"
    yield "each model whose time the papers state, of their own GPUs (docs/preflight.md)"
    yield ""


def report(
    of_tasks: Sequence[Budget], scale: str, machine: Machine, trainings: Cost | None = None
) -> Iterator[str]:
    """Yield the lines of the budget: each task's, and the total beside what there is.

    ``trainings`` are those of tables and figures, where ``exhibits_report`` has named them; without
    that, what is known of each model of a task is told here.
    """
    for budget in of_tasks:
        yield from _task(budget)
        if trainings is None:
            yield from _trainings(budget)
        yield ""
    yield from underlined(f"in all, at scale {scale}")
    yield f"to download: {_downloads(_all_downloads(of_tasks))}"
    free = _amount(machine.results)
    if not machine.is_one_disk:
        free += f" free for results, {_amount(machine.downloads)} for downloads"
    yield f"disk, beyond what is there: {_amount(_disk(of_tasks))} for results; free: {free}"
    has = "" if machine.memory is None else f"; this machine has {_amount(machine.memory)}"
    yield f"memory of the largest job: {_amount(_memory(of_tasks))}{has}"
    if trainings is None:
        to_train = Hours(
            cores=sum(budget.training_hours("core") for budget in of_tasks),
            gpus=sum(budget.training_hours("GPU") for budget in of_tasks),
        )
        models = (cost for budget in of_tasks for cost in budget.trainings)
        unknown = sum(cost.runs for cost in models if cost.known is None)
    else:
        to_train = trainings.to_come or Hours()
        unknown = trainings.unknown
    prepared = sum(stage.core_hours for budget in of_tasks for stage in budget.stages)
    yield f"core-hours: {_hours(prepared)} to prepare and align, {_hours(to_train.cores)} to train"
    yield f"GPU-hours: {_hours(to_train.gpus)} to train"
    if unknown:
        yield f"{_runs(unknown)} beside these: hours not known"
    yield "not counted: decoding and scoring, and memory of GPUs"


def estimates(of_tasks: Sequence[Budget], costs: Costs) -> Iterator[str]:
    """Yield what the trainings whose hours the papers state would take on GPUs of today."""
    works = {}
    for budget in of_tasks:
        for cost in budget.trainings:
            if cost.work and cost.known and cost.known.printed:
                works[cost.known] = cost.work
    if not works:
        return
    yield ""
    yield from underlined("estimate, not measured: one training on one GPU, by its peak rates")
    header = ["", "GPU", "precision", "tokens/s", "GPU-hours", "the paper's"]
    rows = []
    for known, work in works.items():
        for gpu in costs.gpus:
            expected = estimate(work, known, gpu, costs)
            figures = ["has no bf16", "", ""]
            if expected:
                hours = _hours(expected.hours)
                figures = [expected.precision, f"{expected.rate:,.0f}", hours]
            rows.append([known.model, gpu.name, *figures, _hours(known.hours)])
    yield from aligned(header, rows)


def refusals(of_tasks: Sequence[Budget], machine: Machine) -> list[str]:
    """Return the reasons why a run cannot fit; none where it can, as far as is known."""
    reasons = [
        f"{budget.task} needs {', '.join(budget.missing)}, which you have to put there "
        f"(config/tasks/{budget.task}.yaml says what they are)"
        for budget in of_tasks
        if budget.missing
    ]
    disk = _disk(of_tasks)
    incoming = sum(size or 0 for size in _all_downloads(of_tasks).values())
    needs = [("results", disk, machine.results), ("downloads", incoming, machine.downloads)]
    if machine.is_one_disk:
        needs = [("results and downloads", disk + incoming, machine.results)]
    for files, needed, free in needs:
        if needed > free:
            reasons.append(
                f"{files} take {_amount(needed)} of disk, {_amount(free)} are free: make space, "
                "point results_dir and downloads_dir of the scale elsewhere, or choose fewer "
                "`tasks`"
            )
    memory = _memory(of_tasks)
    if machine.memory is not None and memory > machine.memory:
        reasons.append(
            f"the largest job takes {_amount(memory)} of memory, this machine has "
            f"{_amount(machine.memory)}: use another one, fewer gpus, or align fewer pairs"
        )
    return reasons


def _all_downloads(of_tasks: Sequence[Budget]) -> dict[str, int | None]:
    """Return every file that is still to come, those of several tasks once."""
    return {place: size for budget in of_tasks for place, size in budget.downloads.items()}


def _disk(of_tasks: Sequence[Budget]) -> float:
    """Return the bytes that results take beyond what is there, if all tasks run side by side."""
    return sum(max(0, budget.disk - budget.present) for budget in of_tasks)


def _memory(of_tasks: Sequence[Budget]) -> float:
    return max((stage.memory for budget in of_tasks for stage in budget.stages), default=0)


def _task(budget: Budget) -> Iterator[str]:
    yield from underlined(budget.task)
    pairs = "not known yet" if budget.pairs is None else f"about {budget.pairs:,}"
    yield f"training pairs: {pairs}" if budget.stages else "released model: nothing is trained"
    yield f"to download: {_downloads(budget.downloads)}"
    if budget.missing:
        yield f"MISSING: {', '.join(budget.missing)}"
    rows = []
    for stage, (during, after) in zip(budget.stages, levels(budget.stages), strict=True):
        row = [
            stage.name,
            _amount(during),
            _amount(after),
            _amount(stage.memory) if stage.memory else "",
            _hours(stage.core_hours) if stage.core_hours else "",
        ]
        rows.append(row)
    if rows:
        yield from aligned(["stage", "disk", "then kept", "memory", "core-hours"], rows)


def _trainings(budget: Budget) -> Iterator[str]:
    """Yield a line for each model whose time is known, and one for all others."""
    unknown = []
    for cost in budget.trainings:
        known = cost.known
        if known is None:
            unknown.append(cost)
            continue
        hours = f"{_hours(cost.runs * known.hours)} {known.device}-hours ({known.source})"
        yield f"{cost.model}, {_runs(cost.runs)}: {hours}"
    if unknown:
        others = f" and {len(unknown) - 1} more models" if len(unknown) > 1 else ""
        count = _runs(sum(cost.runs for cost in unknown))
        yield f"{unknown[0].model}{others}, {count}: hours neither measured nor in the paper"


def _runs(count: int) -> str:
    return "1 training" if count == 1 else f"{count:,} trainings"


def _downloads(files: Mapping[str, int | None]) -> str:
    if not files:
        return "nothing"
    unknown = sum(size is None for size in files.values())
    rest = f", {unknown} of unknown size" if unknown else ""
    return f"{_amount(sum(size or 0 for size in files.values()))} in {len(files)} files{rest}"


def _amount(size: float) -> str:
    """Write bytes with a unit; powers of ten, as disks have them."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"


def _hours(hours: float) -> str:
    return f"{hours:,.1f}" if hours >= 0.1 or not hours else f"{hours:.2f}"
