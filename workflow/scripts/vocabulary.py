"""Count one side's types."""

from pathlib import Path
from typing import Any

from convs2s.data.dataset import build_vocabulary
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    build_vocabulary(
        Path(snakemake.input.words),
        next(map(Path, snakemake.input.codes), None),
        Path(snakemake.output[0]),
        snakemake.params.settings,
        snakemake.params.size,
    )
