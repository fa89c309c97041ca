"""Write one of the papers' tables, the printed values beside ours."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load
from convs2s.paper.cells import Cell
from convs2s.paper.tables import write_table
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    write_table(
        load(
            Path.cwd(),
            snakemake.config,
            shipped=Path(snakemake.resources.workflow_folder),
            given_by="the workflow's configuration",
        ),
        snakemake.wildcards.table,
        cells=[Cell(**cell) for cell in snakemake.params.shown["cells"]],
        scores=list(snakemake.input.scores),
        published=next(iter(snakemake.input.published), None),
        failures=snakemake.params.shown["failures"],
        outputs=list(map(Path, snakemake.output)),
    )
