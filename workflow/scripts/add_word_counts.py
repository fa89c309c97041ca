"""Add up the word counts of one side's blocks."""

from pathlib import Path
from typing import Any

from convs2s.data.word_counts import add_word_counts
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    add_word_counts(
        tables=list(map(Path, snakemake.input.tables)),
        output=Path(snakemake.output[0]),
    )
