"""Write how many pairs the token stores have, and how many were too long for them."""

from pathlib import Path
from typing import Any

from convs2s.data.dataset import count_dataset
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    count_dataset(
        train=Path(snakemake.input.train),
        valid=Path(snakemake.input.valid),
        table=Path(snakemake.output[0]),
        most_tokens=snakemake.params.most_tokens,
    )
