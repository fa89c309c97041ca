"""Write both sides of a split from the files that the task names."""

from pathlib import Path
from typing import Any

from convs2s.config.corpus import HoldOutPart
from convs2s.data.corpus import extract_corpus
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    hold_out = snakemake.params.hold_out
    source, target = map(Path, snakemake.output)
    extract_corpus(
        pairs=snakemake.params.pairs,
        downloads=Path(snakemake.params.downloads),
        output=(source, target),
        hold_out=HoldOutPart(*hold_out) if hold_out else None,
    )
