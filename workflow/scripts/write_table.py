"""Write one of the papers' tables, the printed values beside ours."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.paper.cells import cells_from_plain
from convs2s.paper.tables import write_table
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    write_table(
        load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1]),
        snakemake.wildcards.table,
        cells=cells_from_plain(snakemake.params.shown["cells"]),
        scores=list(snakemake.input.scores),
        published=next(iter(snakemake.input.published), None),
        failures=snakemake.params.shown["failures"],
        outputs=list(map(Path, snakemake.output)),
    )
