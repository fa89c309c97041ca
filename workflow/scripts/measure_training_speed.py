"""Measure how fast a model was trained."""

from pathlib import Path
from typing import Any

from convs2s.manifest import run_manifest
from convs2s.paper.trained import measure_training_speed
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    measure_training_speed(
        history=Path(snakemake.input.history),
        training=Path(snakemake.input.training),
        output=Path(snakemake.output[0]),
        manifest=run_manifest(inputs, **snakemake.params.run),
    )
