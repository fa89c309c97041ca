"""Print what a run will take, and refuse one that cannot fit."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.costs.preflight import preflight
from convs2s.paper.cells import cells_from_plain
from convs2s.pipeline.process import failures_in_one_line

snakemake: Any

with failures_in_one_line():
    settings = load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1])
    preflight(
        settings.placed(**snakemake.params.places),
        tasks=snakemake.params.tasks,
        cells={table: cells_from_plain(of) for table, of in snakemake.params.cells.items()},
        benchmarks=Path(snakemake.params.benchmarks),
        is_local=snakemake.params.is_local,
        log=Path(snakemake.log[0]),
    )
