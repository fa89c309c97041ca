"""Plot BLEU by the length penalty."""

from pathlib import Path
from typing import Any

from convs2s.paper.curves import plot_length_penalty
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    plot_length_penalty(
        table=Path(snakemake.input.table),
        tuning=Path(snakemake.input.tuning),
        heading=snakemake.params.heading,
        outputs=list(map(Path, snakemake.output)),
    )
