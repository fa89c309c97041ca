"""Join the filtered shards of one side."""

from pathlib import Path
from typing import Any

from convs2s.data.corpus import gather_shards
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    gather_shards(
        shards=list(map(Path, snakemake.input.shards)),
        output=Path(snakemake.output[0]),
    )
