"""Measure the perplexity of a test set's reference."""

from pathlib import Path
from typing import Any

from convs2s.decoding.rescoring import measure_perplexity
from convs2s.manifest import run_manifest
from convs2s.model_file import check_runs
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    check_runs(inputs)
    measure_perplexity(
        models=list(map(Path, snakemake.input.models)),
        source=Path(snakemake.input.source),
        target=Path(snakemake.input.target),
        output=Path(snakemake.output[0]),
        device=snakemake.config.get("device", "auto"),
        threads=snakemake.threads,
        manifest=run_manifest(inputs, **snakemake.params.run),
    )
