"""Count the pairs that were read, kept and dropped, beside what the paper states."""

from pathlib import Path
from typing import Any

from convs2s.data.pair_counts import write_pair_counts
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    write_pair_counts(
        list(map(Path, snakemake.input.shards)),
        Path(snakemake.input.valid),
        (Path(snakemake.output.total), Path(snakemake.output.table)),
        snakemake.params.facts,
    )
