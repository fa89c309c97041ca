"""Align the words of the training text."""

from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.align import align

snakemake: Any

with job(snakemake.log[0]):
    source, target = snakemake.input
    align(source, target, snakemake.output[0], **snakemake.params.sample)
