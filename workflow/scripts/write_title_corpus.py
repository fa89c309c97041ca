"""Write pairs of sentence and title from the tables of papers that the task names."""

from pathlib import Path
from typing import Any

from convs2s.data.titles import write_title_corpus
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    counts = Path(snakemake.output.counts)
    summary = write_title_corpus(
        records=snakemake.params.titles["files"],
        one_in=snakemake.params.titles["one_in"],
        downloads=Path(snakemake.params.downloads),
        outputs=counts.parent,
        counts=counts,
    )
    print(summary)
