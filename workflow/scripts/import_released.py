"""Make a model file of a released model."""

from pathlib import Path
from typing import Any

from convs2s.interop.released import import_released
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    import_released(
        snakemake.params.released,
        Path(snakemake.params.downloads),
        Path(snakemake.output[0]),
        **snakemake.params.facts,
    )
