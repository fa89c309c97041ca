"""Write both sides of a split from the files that the task names."""

from pathlib import Path
from typing import Any

from convs2s.data.corpus import HoldOut, extract
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    hold_out = snakemake.params.hold_out
    source, target = map(Path, snakemake.output)
    extract(
        snakemake.params.pairs,
        Path(snakemake.params.downloads),
        (source, target),
        HoldOut(**hold_out) if hold_out else None,
    )
