"""Add the scores of another model to an n-best list."""

from pathlib import Path
from typing import Any

from convs2s.decoding.rescoring import score_n_best
from convs2s.model_file import check_runs
from convs2s.pipeline.job import job
from convs2s.scoring.tuned_settings import tuned_decoding

snakemake: Any

with job(snakemake) as inputs:
    check_runs(inputs)
    score_n_best(
        models=list(map(Path, snakemake.input.models)),
        source=Path(snakemake.input.source),
        n_best=Path(snakemake.input.n_best),
        output=Path(snakemake.output[0]),
        length_penalty=tuned_decoding(
            snakemake.params.decoding, snakemake.input.get("tuned", [])
        ).alpha,
        device=snakemake.config.get("device", "auto"),
        threads=snakemake.threads,
    )
