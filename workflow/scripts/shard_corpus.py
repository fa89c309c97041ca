"""Cut the training text into shards."""

from pathlib import Path
from typing import Any

from convs2s.data.corpus import shard_corpus
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    shards = zip(
        map(Path, snakemake.output.source), map(Path, snakemake.output.target), strict=True
    )
    shard_corpus(
        source=Path(snakemake.input.source),
        target=Path(snakemake.input.target),
        outputs=list(shards),
    )
