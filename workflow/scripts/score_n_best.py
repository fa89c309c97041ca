"""Add what another model says to an n-best list."""

from pathlib import Path
from typing import Any

from convs2s.decoding.n_best_files import score_list
from convs2s.pipeline.job import job
from convs2s.pipeline.workflow import with_length_penalty

snakemake: Any

with job(snakemake.log[0]):
    settings = with_length_penalty(snakemake.params.settings, snakemake.input.tuned)
    score_list(
        list(map(Path, snakemake.input.models)),
        Path(snakemake.input.source),
        Path(snakemake.input.list),
        Path(snakemake.output[0]),
        length_penalty=settings["length_penalty"],
        device=snakemake.resources.device,
        threads=snakemake.resources.torch_threads,
    )
