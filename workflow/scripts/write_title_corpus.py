"""Write pairs of sentence and title from the tables of publications that the task names."""

from pathlib import Path
from typing import Any

from convs2s.config.file_reference import files_by_location
from convs2s.data.titles import write_title_corpus
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    counts = Path(snakemake.output.counts)
    titles = snakemake.params.titles
    summary = write_title_corpus(
        records=titles["files"],
        one_in=titles["one_in"],
        files=files_by_location(titles["files"], inputs),
        outputs=counts.parent,
        counts=counts,
    )
    print(summary)
