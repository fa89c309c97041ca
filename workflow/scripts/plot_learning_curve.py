"""Plot the perplexities and learning rates of a training."""

from pathlib import Path
from typing import Any

from convs2s.paper.curves import plot_learning_curve
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    plot_learning_curve(
        history=Path(snakemake.input.history),
        heading=snakemake.params.heading,
        outputs=list(map(Path, snakemake.output)),
    )
