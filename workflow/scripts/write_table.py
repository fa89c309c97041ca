"""Write one of the papers' tables, with the printed values beside ours."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.paper.cells import cells
from convs2s.paper.tables import write_table
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    settings = load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1])
    table = snakemake.wildcards.table
    results = snakemake.output[0].rpartition("/paper/")[0]
    write_table(
        settings,
        table,
        cells=cells(settings, table, results),
        scores=list(snakemake.input.scores),
        published=next(iter(snakemake.input.published), None),
        failures=snakemake.params.shown["failures"],
        outputs=list(map(Path, snakemake.output)),
    )
