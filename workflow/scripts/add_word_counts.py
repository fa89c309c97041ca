"""Add up the word counts of one side's shards."""

from pathlib import Path
from typing import Any

from convs2s.data.vocabulary import write_counts
from convs2s.data.word_counts import added_counts
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    write_counts(snakemake.output[0], added_counts(list(map(Path, snakemake.input))))
