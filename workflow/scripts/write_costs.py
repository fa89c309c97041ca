"""Write what the papers' tables and figures take."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.costs.page import write_costs
from convs2s.paper.cells import cells_from_plain
from convs2s.pipeline.job import job, prefix_of

snakemake: Any

with job(snakemake):
    prefix = prefix_of(snakemake.output[0], snakemake.params.page)
    write_costs(
        load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1]),
        cells={table: cells_from_plain(of, prefix) for table, of in snakemake.params.cells.items()},
        benchmarks=Path(prefix + snakemake.params.benchmarks),
        outputs=list(map(Path, snakemake.output)),
    )
