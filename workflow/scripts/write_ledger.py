"""Write the ledger of the runs that the tables' cells rest on."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.paper.cells import cells_from_plain
from convs2s.paper.results import write_ledger
from convs2s.pipeline.job import job, prefix_of

snakemake: Any

with job(snakemake):
    prefix = prefix_of(snakemake.output[0], snakemake.params.page)
    write_ledger(
        load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1]),
        cells=[
            cell
            for table in snakemake.params.cells.values()
            for cell in cells_from_plain(table, prefix)
        ],
        scores=list(snakemake.input.scores),
        published=next(iter(snakemake.input.published), None),
        output=Path(snakemake.output[0]),
    )
