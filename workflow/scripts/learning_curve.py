"""Draw how a model learned."""

from pathlib import Path
from typing import Any

from convs2s.paper.figures import learning_curve
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    learning_curve(Path(snakemake.input[0]), list(map(Path, snakemake.output)))
