"""Take the BPE codes from a model file."""

from pathlib import Path
from typing import Any

from convs2s.interop.taken_vocabulary import take_codes
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    take_codes(model=Path(snakemake.input.model), output=Path(snakemake.output[0]))
