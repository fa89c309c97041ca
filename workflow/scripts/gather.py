"""Join the cleaned shards of one side."""

from pathlib import Path
from typing import Any

from convs2s.text.clean import gather
from convs2s.workflow import job

snakemake: Any

with job(snakemake.log[0]):
    gather(
        list(map(Path, snakemake.input.shards)),
        list(map(Path, snakemake.input.reports)),
        Path(snakemake.output.text),
        Path(snakemake.output.report),
    )
