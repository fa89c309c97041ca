"""Write a few translations with their sources and references."""

from pathlib import Path
from typing import Any

from convs2s.pipeline.job import job
from convs2s.scoring.translations import write_examples

snakemake: Any

with job(snakemake):
    write_examples(
        translations=Path(snakemake.input.translations),
        reference=Path(snakemake.input.reference),
        output=Path(snakemake.output[0]),
    )
