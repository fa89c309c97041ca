"""Write what the papers' tables and figures take."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.costs.page import write_costs
from convs2s.paper.cells import cells_from_plain
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    write_costs(
        load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1]),
        cells={table: cells_from_plain(of) for table, of in snakemake.params.cells.items()},
        benchmarks=Path(snakemake.params.benchmarks),
        outputs=list(map(Path, snakemake.output)),
    )
