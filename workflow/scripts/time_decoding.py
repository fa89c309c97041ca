"""Time the translation of a test set."""

from pathlib import Path
from typing import Any

from convs2s.decoding.test_sets import time_decoding
from convs2s.manifest import run_manifest
from convs2s.model_file import check_runs
from convs2s.pipeline.job import job
from convs2s.scoring.tuned_settings import tuned_decoding

snakemake: Any

with job(snakemake):
    check_runs(snakemake.input)
    decoding = tuned_decoding(snakemake.params.decoding, snakemake.input.tuned)
    time_decoding(
        models=list(map(Path, snakemake.input.models)),
        source=Path(snakemake.input.source),
        output=Path(snakemake.output[0]),
        settings=decoding,
        device=snakemake.wildcards.device,
        threads=snakemake.threads,
        manifest=run_manifest(
            snakemake.input, **snakemake.params.run, decoding=decoding.model_dump(mode="json")
        ),
    )
