"""Align the words of the training text."""

from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.align import align_words

snakemake: Any

with job(snakemake):
    align_words(
        source=snakemake.input.source,
        target=snakemake.input.target,
        links=snakemake.output[0],
        **snakemake.params.sample,
    )
