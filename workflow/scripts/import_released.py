"""Make a model file of a released model."""

from pathlib import Path
from typing import Any

from convs2s.interop.fairseq import import_released
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    import_released(
        references=snakemake.params.released,
        downloads=Path(snakemake.params.downloads),
        output=Path(snakemake.output[0]),
        **snakemake.params.metadata,
    )
