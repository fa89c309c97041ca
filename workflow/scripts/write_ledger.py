"""Write the ledger of the runs in the papers' tables."""

from itertools import chain
from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.paper.cells import cells_of_tables
from convs2s.paper.results import write_ledger
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    settings = load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1])
    results = snakemake.output[0].rpartition("/paper/")[0]
    write_ledger(
        settings,
        cells=chain.from_iterable(cells_of_tables(settings, results).values()),
        scores=list(snakemake.input.scores),
        published=next(iter(snakemake.input.published), None),
        output=Path(snakemake.output[0]),
    )
