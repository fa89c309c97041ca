"""Drop the pairs of a part of the corpus that training is better without."""

from typing import Any

from convs2s.text.clean import clean_corpus
from convs2s.workflow import job

snakemake: Any

with job(snakemake.log[0]):
    source_in, target_in = snakemake.input
    source_out, target_out = snakemake.output.sides
    clean_corpus(
        source_in,
        target_in,
        source_out,
        target_out,
        snakemake.output.report,
        **snakemake.params.limits,
    )
