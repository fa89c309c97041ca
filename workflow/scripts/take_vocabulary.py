"""Take the vocabulary of one side from a model file."""

from pathlib import Path
from typing import Any

from convs2s.interop.taken_vocabulary import take_vocabulary
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    take_vocabulary(
        model=Path(snakemake.input.model),
        words=Path(snakemake.input.words),
        side=snakemake.params.side,
        vocabulary=snakemake.params.kind,
        output=Path(snakemake.output[0]),
    )
