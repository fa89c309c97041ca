"""Generate the corpus of clauses."""

from pathlib import Path
from typing import Any

from convs2s.demo.clauses import write_demo_clauses
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    write_demo_clauses(Path(snakemake.output[0]).parent)
