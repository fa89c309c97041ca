"""Generate the demo corpus."""

from pathlib import Path
from typing import Any

from convs2s.demo.corpus import write_demo_corpus
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    write_demo_corpus(Path(snakemake.output[0]).parent)
