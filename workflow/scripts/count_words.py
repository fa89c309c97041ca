"""Count the words of a block of one side's training text."""

from pathlib import Path
from typing import Any

from convs2s.data.store import block_rows
from convs2s.data.word_counts import count_words
from convs2s.pipeline.job import job
from convs2s.text.corpus_filter import read_report

snakemake: Any

with job(snakemake):
    count_words(
        text=Path(snakemake.input.text),
        rows=block_rows(
            snakemake.wildcards.block, read_report(Path(snakemake.input.pairs))["kept"]
        ),
        output=Path(snakemake.output[0]),
    )
