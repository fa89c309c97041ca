"""Translate a test set."""

from pathlib import Path
from typing import Any

from convs2s.decoding.test_sets import decode_test_set
from convs2s.decoding.translate import translator_of_job
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
        device=snakemake.config.get("device", "auto"),
        threads=snakemake.threads,
    ) as translator:
        decode_test_set(
            translator,
            source=Path(snakemake.input.source),
            lines=Path(snakemake.output.lines),
            text=Path(snakemake.output.text),
        )
