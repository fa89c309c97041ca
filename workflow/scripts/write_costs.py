"""Write what the papers' tables and figures take."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load
from convs2s.paper.cells import Cell
from convs2s.paper.costs_page import write_costs
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    write_costs(
        load(
            Path.cwd(),
            snakemake.config,
            shipped=Path(snakemake.resources.workflow_folder),
            given_by="the workflow's configuration",
        ),
        cells={
            table: [Cell(**cell) for cell in cells]
            for table, cells in snakemake.params.cells.items()
        },
        benchmarks=Path(snakemake.params.benchmarks),
        outputs=list(map(Path, snakemake.output)),
    )
