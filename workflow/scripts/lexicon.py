"""Count aligned words: the dictionary for unknown words, and candidates for selection."""

from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.lexicon import write_lexicon

snakemake: Any

with job(snakemake.log[0]):
    source, target = snakemake.input.text
    write_lexicon(
        source,
        target,
        snakemake.input.links,
        snakemake.output.dictionary,
        snakemake.output.candidates,
    )
