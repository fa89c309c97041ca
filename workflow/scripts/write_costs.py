"""Write what the papers' tables and figures took, and what the rest will take."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.costs.page import write_costs
from convs2s.paper.cells import planned_cells
from convs2s.pipeline.job import job, prefix_of

snakemake: Any

with job(snakemake):
    settings = load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1])
    prefix = prefix_of(snakemake.output[0], snakemake.params.page)
    results = snakemake.output[0].rpartition("/paper/")[0]
    write_costs(
        settings,
        cells=planned_cells(settings, results, snakemake.params.planned),
        benchmarks=Path(prefix + snakemake.params.benchmarks),
        outputs=list(map(Path, snakemake.output)),
    )
