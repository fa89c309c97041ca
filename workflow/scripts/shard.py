"""Cut the training text into shards."""

from pathlib import Path
from typing import Any

from convs2s.data.corpus import shard
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    source, target = map(Path, snakemake.input)
    outputs = zip(
        map(Path, snakemake.output.source), map(Path, snakemake.output.target), strict=True
    )
    shard(source, target, list(outputs))
