"""Learn BPE codes."""

from pathlib import Path
from typing import Any

from convs2s.data.dataset import write_codes
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    write_codes(
        list(map(Path, snakemake.input)), Path(snakemake.output[0]), snakemake.params.merges
    )
