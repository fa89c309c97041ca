"""Count aligned words: the dictionary for unknown words, and candidates for selection."""

from snakemake.script import snakemake

from convs2s.text.lexicon import write_lexicon
from convs2s.workflow import job

with job(snakemake.log[0]):
    write_lexicon(
        *snakemake.input.text,
        snakemake.input.links,
        snakemake.output.dictionary,
        snakemake.output.candidates,
    )
