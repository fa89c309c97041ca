"""Count aligned words: the dictionary for unknown words, and candidates for selection."""

from typing import Any

from convs2s.text.lexicon import write_lexicon
from convs2s.workflow import job

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
