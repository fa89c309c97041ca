"""Print what a run will take, and refuse one that cannot fit."""

from pathlib import Path
from typing import Any

from convs2s.config import load
from convs2s.errors import UserError
from convs2s.files import write_lines
from convs2s.paper.cells import cells
from convs2s.pipeline.preflight import budgets, machine
from convs2s.pipeline.preflight_report import refusals, report
from convs2s.pipeline.process import failures_in_one_line

snakemake: Any

with failures_in_one_line():
    settings = load(Path.cwd(), snakemake.config)
    wanted = [cell for table in snakemake.params.tables for cell in cells(settings, table)]
    found = budgets(settings, snakemake.params.tasks, wanted)
    here = machine(settings.scale, snakemake.params.is_local)
    lines = list(report(found, settings.options["scale"], here))
    write_lines(snakemake.log[0], lines)
    print("\n".join(lines), flush=True)
    reasons = refusals(found, here)
    if reasons:
        raise UserError(f"this run cannot fit: {'; '.join(reasons)}")
