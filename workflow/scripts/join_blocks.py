"""Join the token stores of the training text's blocks."""

from pathlib import Path
from typing import Any

from convs2s.config.task import DatasetMetadata
from convs2s.data.dataset import join_blocks
from convs2s.files.checksums import forget_checksums
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    join_blocks(
        stores=list(map(Path, snakemake.input.stores)),
        descriptions=list(map(Path, snakemake.input.descriptions)),
        store=Path(snakemake.output.store),
        description=Path(snakemake.output.description),
        metadata=DatasetMetadata.model_validate(snakemake.params.metadata),
    )
    forget_checksums(snakemake.input.descriptions)  # Snakemake removes these files
