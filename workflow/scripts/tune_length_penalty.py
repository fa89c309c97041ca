"""Tune the length penalty on a development set's n-best list."""

from pathlib import Path
from typing import Any

from convs2s.manifest import run_manifest
from convs2s.pipeline.job import job
from convs2s.scoring.reranking import tune_length_penalty
from convs2s.text.preparation import Preparation

snakemake: Any

with job(snakemake) as inputs:
    metadata = snakemake.params.metadata
    wildcards = snakemake.wildcards
    tune_length_penalty(
        n_best=Path(snakemake.input.n_best),
        raw=Path(snakemake.input.raw),
        tokenized=Path(snakemake.input.tokenized),
        tsv=Path(snakemake.output.tsv),
        json=Path(snakemake.output.json),
        restore=Preparation(
            metadata["preparation"], metadata["languages"]["target"]
        ).restore,
        tokenize=snakemake.params.tokenize,
        header={
            "stand_in": snakemake.params.stand_in,
            **{name: wildcards[name] for name in ("task", "model", "run", "decoding")},
            "scale": snakemake.params.scale,
            "test_set": wildcards.testset,
        },
        manifest=run_manifest(inputs),
    )
