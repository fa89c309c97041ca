"""Write how many pairs were read, kept and dropped, with the paper's numbers."""

from pathlib import Path
from typing import Any

from convs2s.config.task import CorpusMetadata
from convs2s.data.counts import count_pairs
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    count_pairs(
        train=Path(snakemake.input.train),
        valid=Path(snakemake.input.valid),
        table=Path(snakemake.output[0]),
        metadata=CorpusMetadata.model_validate(snakemake.params.metadata),
    )
