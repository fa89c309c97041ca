"""Plot the attention of each decoder layer for the sentence of the paper's figure."""

from pathlib import Path
from typing import Any

from convs2s.paper.attention_maps import plot_example
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    plot_example(example=Path(inputs[0]), outputs=list(map(Path, snakemake.output)))
