"""Time the translation of a test set."""

from pathlib import Path
from typing import Any

from convs2s.decoding.test_sets import time_decoding
from convs2s.decoding.translate import translator_of_job
from convs2s.manifest import run_manifest
from convs2s.model_file import check_runs
from convs2s.pipeline.job import job
from convs2s.scoring.tuned_settings import tuned_decoding

snakemake: Any

with job(snakemake) as inputs:
    check_runs(inputs)
    settings = tuned_decoding(snakemake.params.decoding, snakemake.input.tuned)
    with translator_of_job(
        list(map(Path, snakemake.input.models)),
        settings,
        device=snakemake.wildcards.device,
        threads=snakemake.threads,
    ) as translator:
        time_decoding(
            translator,
            source=Path(snakemake.input.source),
            output=Path(snakemake.output[0]),
            device=snakemake.wildcards.device,
            threads=snakemake.threads,
            manifest=run_manifest(
                inputs,
                **snakemake.params.run,
                decoding=settings.model_dump(mode="json"),
            ),
        )
