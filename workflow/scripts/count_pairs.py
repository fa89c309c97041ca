"""Count the pairs that were read, kept and dropped, beside what the paper states."""

from pathlib import Path
from typing import Any

from convs2s.config.task import CorpusMetadata
from convs2s.data.counts import count_pairs
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    count_pairs(
        shards=list(map(Path, snakemake.input.shards)),
        valid=Path(snakemake.input.valid),
        total=Path(snakemake.output.total),
        table=Path(snakemake.output.table),
        metadata=CorpusMetadata.model_validate(snakemake.params.metadata),
    )
