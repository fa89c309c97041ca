"""Print what a run will take, and refuse one that cannot fit."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.costs.preflight import preflight
from convs2s.paper.cells import cells_from_plain
from convs2s.pipeline.job import prefix_of
from convs2s.pipeline.process import failures_in_one_line

snakemake: Any

with failures_in_one_line():
    settings = load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1])
    prefix = prefix_of(snakemake.log[0], snakemake.params.stated_log)
    cells = snakemake.params.cells.items()
    preflight(
        settings,
        tasks=snakemake.params.tasks,
        cells={table: cells_from_plain(of, prefix) for table, of in cells},
        benchmarks=Path(prefix + snakemake.params.benchmarks),
        is_local=True,
        log=Path(snakemake.log[0]),
    )
