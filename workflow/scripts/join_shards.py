"""Join the token stores of the training text's shards."""

from pathlib import Path
from typing import Any

from convs2s.data.dataset import join_shards
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    join_shards(
        list(map(Path, snakemake.input.stores)),
        list(map(Path, snakemake.input.facts)),
        (Path(snakemake.output.store), Path(snakemake.output.facts)),
        snakemake.params.facts,
    )
