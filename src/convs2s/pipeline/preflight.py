"""What a run will take, said before it starts."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.paper.cells import Cell
from convs2s.paper.costs import costs
from convs2s.pipeline.budget import budgets, machine
from convs2s.pipeline.budget_report import exhibits_report, refusals, report


def preflight(
    settings: Settings,
    *,
    tasks: Sequence[str],
    cells: Mapping[str, Sequence[Cell]],
    benchmarks: Path,
    is_local: bool,
    log: Path,
) -> None:
    """Print the budget of tasks, and of the cells of the paper's tables that rest on them.

    Args:
        settings: the configuration.
        tasks: their names.
        cells: table -> its cells, whose runs are trained; none for the tasks' headlines alone.
        benchmarks: the folder of Snakemake's benchmark files.
        is_local: whether jobs run on this machine.
        log: where the budget is written as well.

    Raises:
        UserError: the run cannot fit, and why.
    """
    found = budgets(settings, tasks, [cell for table in cells.values() for cell in table])
    here = machine(settings.scale, is_local)
    exhibits = costs(settings, cells, benchmarks) if cells else None
    lines = [
        *(exhibits_report(exhibits) if exhibits else ()),
        *report(found, settings.options.scale, here, exhibits.total if exhibits else None),
    ]
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:
        # The reader has gone (`| head`). Snakemake would wait for ever for a job that ends by it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    reasons = refusals(found, here)
    said = f"this run cannot fit: {'; '.join(reasons)}" if reasons else ""
    write_lines(log, [*lines, *([f"error: {said}"] if said else [])])
    if said:
        raise UserError(said)
