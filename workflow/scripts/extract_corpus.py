"""Write both sides of a split, or a further reference of it, from the files that the task names."""

from itertools import chain
from pathlib import Path
from typing import Any

from convs2s.config.corpus import HoldOutPart
from convs2s.config.file_reference import files_by_location
from convs2s.data.corpus import extract_corpus, extract_reference
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    pairs, hold_out = snakemake.params.pairs, snakemake.params.hold_out
    files = files_by_location(chain.from_iterable(pairs), snakemake.input)
    outputs = list(map(Path, snakemake.output))
    if len(outputs) == 2:
        extract_corpus(
            pairs=pairs,
            files=files,
            output=(outputs[0], outputs[1]),
            hold_out=HoldOutPart(*hold_out) if hold_out else None,
        )
    else:
        extract_reference(pairs=pairs, files=files, output=outputs[0])
