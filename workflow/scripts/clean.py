"""Drop the pairs of a part of the corpus that training is better without."""

from snakemake.script import snakemake

from convs2s.text.clean import clean_corpus
from convs2s.workflow import job

with job(snakemake.log[0]):
    clean_corpus(
        *snakemake.input,
        *snakemake.output.sides,
        snakemake.output.report,
        **snakemake.params.limits,
    )
