"""Count the words of a block of one side's training text."""

from pathlib import Path
from typing import Any

from convs2s.data.blocks import rows_of_block
from convs2s.data.word_counts import count_words
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    count_words(
        text=Path(snakemake.input.text),
        rows=rows_of_block(snakemake.wildcards.block, Path(snakemake.input.pairs)),
        output=Path(snakemake.output[0]),
    )
