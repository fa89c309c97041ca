"""Write the token store of a split, or of a block of it."""

from pathlib import Path
from typing import Any

from convs2s.config.task import DatasetMetadata
from convs2s.data.dataset import binarize
from convs2s.data.store import block_rows
from convs2s.pipeline.job import job
from convs2s.text.corpus_filter import read_report

snakemake: Any

with job(snakemake):
    block = snakemake.wildcards.part.partition(".")[2]  # the validation text has none
    binarize(
        text=[Path(snakemake.input.source), Path(snakemake.input.target)],
        bpe_codes=list(map(Path, snakemake.input.bpe_codes)),
        vocabularies=list(map(Path, snakemake.input.vocabularies)),
        store=Path(snakemake.output.store),
        description=Path(snakemake.output.description),
        metadata=DatasetMetadata.model_validate(snakemake.params.metadata),
        most_tokens=snakemake.params.most_tokens,
        rows=block_rows(block, read_report(Path(snakemake.input.pairs))["kept"]) if block else None,
    )
