"""Write one of the papers' tables, the printed values beside ours."""

from pathlib import Path
from typing import Any

from convs2s.config import load
from convs2s.paper.tables import write_table
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    write_table(
        load(Path.cwd(), snakemake.config),
        snakemake.wildcards.table,
        list(snakemake.input),
        list(map(Path, snakemake.output)),
    )
