"""Count the words of the training text, on each side."""

from pathlib import Path
from typing import Any

from convs2s.data.word_counts import count_words
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    for side in ("source", "target"):
        count_words(
            text=Path(snakemake.input[side]), output=Path(snakemake.output[side])
        )
