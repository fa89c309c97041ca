"""Write the vocabulary of one side."""

from pathlib import Path
from typing import Any

from convs2s.data.dataset import build_vocabulary
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    build_vocabulary(
        words=Path(snakemake.input.words),
        bpe_codes=next(map(Path, snakemake.input.bpe_codes), None),
        output=Path(snakemake.output[0]),
        size=snakemake.params.size,
        **snakemake.params.settings,
    )
