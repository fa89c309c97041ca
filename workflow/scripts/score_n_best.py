"""Add what another model says to an n-best list."""

from pathlib import Path
from typing import Any

from convs2s.decoding.files import score_list
from convs2s.workflow import job

snakemake: Any

with job(snakemake.log[0]):
    score_list(
        list(map(Path, snakemake.input.models)),
        Path(snakemake.input.source),
        Path(snakemake.input.list),
        Path(snakemake.output[0]),
        length_penalty=snakemake.params.alpha,
        device=snakemake.resources.device,
        threads=snakemake.resources.torch_threads,
    )
