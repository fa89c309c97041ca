"""Write a further reference of a test set from the files that the task names."""

from pathlib import Path
from typing import Any

from convs2s.data.corpus import extract_reference
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    extract_reference(
        pairs=snakemake.params.pairs,
        downloads=Path(snakemake.params.downloads),
        output=Path(snakemake.output[0]),
    )
