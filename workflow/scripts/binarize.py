"""Write the token stores of the training and the validation text."""

from pathlib import Path
from typing import Any

from convs2s.config.task import DatasetMetadata
from convs2s.data.dataset import binarize
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    files = snakemake.input
    for part, store, description in zip(
        ("train", "valid"),
        snakemake.output.stores,
        snakemake.output.descriptions,
        strict=True,
    ):
        binarize(
            text=(Path(files[f"{part}_source"]), Path(files[f"{part}_target"])),
            bpe_codes=list(map(Path, files.bpe_codes)),
            vocabularies=list(map(Path, files.vocabularies)),
            store=Path(store),
            description=Path(description),
            metadata=DatasetMetadata.model_validate(snakemake.params.metadata),
            most_tokens=snakemake.params.most_tokens,
        )
