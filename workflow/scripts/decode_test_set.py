"""Translate a test set."""

from pathlib import Path
from typing import Any

from convs2s.decoding.test_sets import decode_test_set
from convs2s.model_file import check_runs
from convs2s.pipeline.job import job
from convs2s.scoring.tuned_settings import tuned_decoding

snakemake: Any

with job(snakemake):
    check_runs(snakemake.input)
    decode_test_set(
        models=list(map(Path, snakemake.input.models)),
        source=Path(snakemake.input.source),
        lines=Path(snakemake.output.lines),
        text=Path(snakemake.output.text),
        settings=tuned_decoding(snakemake.params.decoding, snakemake.input.tuned),
        device=snakemake.config.get("device", "auto"),
        threads=snakemake.threads,
    )
