"""Join the cleaned shards of one side."""

from pathlib import Path
from typing import Any

from convs2s.files import join_texts
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    join_texts(list(map(Path, snakemake.input)), Path(snakemake.output[0]))
