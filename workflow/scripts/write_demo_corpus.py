"""Write both demo corpora."""

from pathlib import Path
from typing import Any

from convs2s.demo.corpus import CORPUS_SHA256, write_demo_corpus
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    for corpus in CORPUS_SHA256:
        write_demo_corpus(Path(snakemake.output[0]).parents[1] / corpus, corpus)
