"""Write the raw training text of a large corpus in parts."""

from itertools import chain
from pathlib import Path
from typing import Any

from convs2s.config.file_reference import files_by_location
from convs2s.data.corpus import RawText, split_training_text
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    pairs = snakemake.params.pairs
    sources = map(Path, snakemake.output.source)
    targets = map(Path, snakemake.output.target)
    files = files_by_location(chain.from_iterable(pairs), inputs)
    split_training_text(
        RawText(pairs, files, snakemake.params.hold_out),
        parts=list(zip(sources, targets, strict=True)),
    )
