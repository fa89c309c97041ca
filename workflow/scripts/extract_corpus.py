"""Write both sides of a split from the files that the task names."""

from itertools import chain
from pathlib import Path
from typing import Any

from convs2s.config.file_reference import files_by_location
from convs2s.data.corpus import RawText, extract_corpus
from convs2s.pipeline.job import job
from convs2s.pipeline.sources import note_sources

snakemake: Any

with job(snakemake) as inputs:
    pairs = snakemake.params.pairs
    files = files_by_location(chain.from_iterable(pairs), inputs)
    extract_corpus(
        RawText(pairs, files, snakemake.params.hold_out),
        (Path(snakemake.output[0]), Path(snakemake.output[1])),
    )
    note_sources(snakemake.output[0], pairs)
