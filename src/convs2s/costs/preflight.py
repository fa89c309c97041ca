"""What a run will take, said before it starts, and the reasons why it cannot fit."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from jinja2 import Environment, PackageLoader, Template

from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.costs.budget import Budget, budgets, levels
from convs2s.costs.exhibits import PaperCosts, costs
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
    every_cell = list(chain.from_iterable(cells.values()))
    of_tasks = budgets(settings, tasks, every_cell)
    this_machine = machine(settings.scale, is_local)
    exhibits = costs(settings, cells, benchmarks) if cells else None
    lines = report(settings, of_tasks, this_machine, exhibits).splitlines()
    _say("\n".join(lines))
    for line in requests:
        _say(line)
        lines.append(line)
    reasons = refusals(of_tasks, this_machine)
    message = f"this run cannot fit: {'; '.join(reasons)}"
    if reasons:
        lines.append(f"error: {message}")
    write_lines(log, lines)
    if reasons:
        raise UserError(message)


def _say(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader has gone (`| head`). Snakemake would wait for ever for a job that ends by it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(
    settings: Settings,
    of_tasks: Sequence[Budget],
    machine: Machine,
    exhibits: PaperCosts | None = None,
) -> str:
    """Return the budget as text: each task's, and the total beside what there is.

    ``exhibits`` is what tables and figures take; without it, what is known of each model of a task
    is told. Estimates are of the trainings whose hours the papers state, on GPUs of today.
    """
    trainings = [cost for budget in of_tasks for cost in budget.trainings]
    printed = [cost for cost in trainings if cost.known and cost.known.printed]
    if exhibits:
        to_train = exhibits.total.to_come or Hours()
        unknown = exhibits.total.unknown
    else:
        to_train = sum((budget.to_train for budget in of_tasks), Hours())
        unknown = sum(cost.runs for cost in trainings if cost.known is None)
    return _template().render(
        exhibits=exhibits and {**exhibits.exhibits, "all, each training once": exhibits.total},
        budgets=of_tasks,
        scale=settings.options.scale,
        machine=machine,
        downloads=_all_downloads(of_tasks),
        disk=_disk(of_tasks),
        memory=_memory(of_tasks),
        to_train=to_train,
        unknown=unknown,
        works={cost.known: cost.work for cost in printed if cost.work},
        costs=settings.costs,
    )


def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("convs2s.costs", "data"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"levels": levels, "estimate": estimate}
    environment.filters |= {
        "aligned": _aligned,
        "amount": _amount,
        "downloads": _downloads,
        "hours": _hours,
        "number": "{:,}".format,
        "trainings": _runs,
        "underlined": lambda title: "\n".join(underlined(title)),
    }
    return environment.get_template("preflight.txt.j2")


def _aligned(text: str) -> str:
    """Return lines of cells, with a bar between two, as a table."""
    rows = [line.split("|") for line in text.splitlines()]
    return "".join(f"{line}\n" for line in aligned(rows[0], rows[1:]))


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
