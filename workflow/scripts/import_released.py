"""Convert a released model into a model file."""

from pathlib import Path
from typing import Any

from convs2s.config.file_reference import files_by_location
from convs2s.interop.fairseq import import_released
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    references = snakemake.params.released
    import_released(
        references=references,
        files=files_by_location(filter(None, references.values()), inputs),
        output=Path(snakemake.output[0]),
        **snakemake.params.metadata,
    )
