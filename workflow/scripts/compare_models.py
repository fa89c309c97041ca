"""Compare two models of a task on a test set."""

from pathlib import Path
from typing import Any

from convs2s.manifest import run_manifest
from convs2s.pipeline.job import job
from convs2s.scoring.comparison import compare_models
from convs2s.scoring.reports.layout import Report

snakemake: Any

with job(snakemake) as inputs:
    wildcards = snakemake.wildcards
    sides = zip(
        map(Path, snakemake.input.baseline),
        map(Path, snakemake.input.system),
        strict=True,
    )
    compare_models(
        pairs={baseline.parent.name: (baseline, system) for baseline, system in sides},
        raw=Path(snakemake.input.raw),
        tokenized=Path(snakemake.input.tokenized),
        report=Report(
            text=Path(snakemake.output.text),
            json=Path(snakemake.output.json),
            stand_in=snakemake.params.stand_in,
            header={
                **{
                    name: wildcards[name]
                    for name in ("task", "baseline", "system", "decoding")
                },
                "scale": snakemake.params.scale,
            },
        ),
        test_set=wildcards.testset,
        tokenize=snakemake.params.tokenize,
        manifest=run_manifest(inputs, decoding=snakemake.params.decoding),
    )
