"""Draw how BLEU depends on the length penalty."""

from pathlib import Path
from typing import Any

from convs2s.paper.length_penalty import length_penalty_curve
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    length_penalty_curve(
        Path(snakemake.input.table),
        Path(snakemake.input.tuning),
        list(map(Path, snakemake.output)),
    )
