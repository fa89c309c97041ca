"""Join the filtered parts of the training text."""

from pathlib import Path
from typing import Any

from convs2s.data.corpus import join_training_text
from convs2s.pipeline.job import job
from convs2s.pipeline.sources import note_sources

snakemake: Any

with job(snakemake):
    sources = map(Path, snakemake.input.source)
    targets = map(Path, snakemake.input.target)
    join_training_text(
        parts=list(zip(sources, targets, strict=True)),
        reports=list(map(Path, snakemake.input.reports)),
        sides=(Path(snakemake.output.source), Path(snakemake.output.target)),
        report=Path(snakemake.output.report),
    )
    note_sources(snakemake.output.source, snakemake.params.pairs)
