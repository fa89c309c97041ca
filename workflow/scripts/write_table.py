"""Write one of the papers' tables, the printed values beside ours."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.paper.cells import cells_from_plain
from convs2s.paper.tables import write_table
from convs2s.pipeline.job import job, prefix_of

snakemake: Any

with job(snakemake):
    prefix = prefix_of(snakemake.output[0], snakemake.params.page)
    failures = snakemake.params.shown["failures"]
    write_table(
        load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1]),
        snakemake.wildcards.table,
        cells=cells_from_plain(snakemake.params.shown["cells"], prefix),
        scores=list(snakemake.input.scores),
        published=next(iter(snakemake.input.published), None),
        failures={prefix + path: why for path, why in failures.items()},
        outputs=list(map(Path, snakemake.output)),
    )
