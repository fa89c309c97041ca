"""Write the ledger of the runs that the tables' cells rest on."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load
from convs2s.paper.cells import Cell
from convs2s.paper.ledger import write_ledger
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    write_ledger(
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
        scores=list(snakemake.input.scores),
        published=next(iter(snakemake.input.published), None),
        output=Path(snakemake.output[0]),
    )
