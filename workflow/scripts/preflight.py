"""Print what a run will take, and refuse one that cannot fit."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load
from convs2s.paper.cells import Cell
from convs2s.pipeline.preflight import preflight
from convs2s.pipeline.process import failures_in_one_line

snakemake: Any

with failures_in_one_line():
    settings = load(
        Path.cwd(),
        snakemake.config,
        shipped=snakemake.params.workflow_folder,
        given_by="the workflow's configuration",
    )
    preflight(
        settings.placed(**snakemake.params.places),
        tasks=snakemake.params.tasks,
        cells={
            table: [Cell(**cell) for cell in cells]
            for table, cells in snakemake.params.cells.items()
        },
        benchmarks=Path(snakemake.params.benchmarks),
        is_local=snakemake.params.is_local,
        log=Path(snakemake.log[0]),
    )
