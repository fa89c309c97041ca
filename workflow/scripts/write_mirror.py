"""Write the miniature mirror."""

from pathlib import Path
from typing import Any

from convs2s.mirror.write import write_mirror
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    write_mirror(Path(snakemake.output[0]))
