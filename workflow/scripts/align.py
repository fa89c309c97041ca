"""Align the words of the training text."""

from snakemake.script import snakemake

from convs2s.text.align import align
from convs2s.workflow import job

with job(snakemake.log[0]):
    align(*snakemake.input, snakemake.output[0], pairs=snakemake.params.pairs)
