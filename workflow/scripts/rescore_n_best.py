"""Choose from an n-best list by two models' scores, and score the choice."""

from pathlib import Path
from typing import Any

from convs2s.manifest import run_manifest
from convs2s.pipeline.job import job
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.reranking import rescore_n_best
from convs2s.text.preparation import Preparation

snakemake: Any

with job(snakemake) as inputs:
    metadata = snakemake.params.metadata
    wildcards = snakemake.wildcards
    run = f"{wildcards.model} {wildcards.run}"
    # The run has scored the list of another system. Or, with a wildcard `scorer`, another model has
    # scored the list of the run.
    names = {"baseline": snakemake.params.get("baseline"), "scorer": run}
    if wildcards.get("scorer"):
        names = {
            "baseline": run,
            "decoding": wildcards.decoding,
            "scorer": f"{wildcards.scorer} {wildcards.scorer_run}",
        }
    rescore_n_best(
        n_best=Path(snakemake.input.n_best),
        raw=Path(snakemake.input.raw),
        tokenized=Path(snakemake.input.tokenized),
        translations=Path(snakemake.output.translations),
        report=Report(
            text=Path(snakemake.output.text),
            json=Path(snakemake.output.json),
            stand_in=snakemake.params.stand_in,
            header={
                "task": wildcards.task,
                **names,
                "scale": snakemake.params.scale,
            },
        ),
        restore=Preparation(
            metadata["preparation"], metadata["languages"]["target"]
        ).restore,
        test_set=snakemake.wildcards.testset,
        tokenize=snakemake.params.tokenize,
        manifest=run_manifest(inputs),
    )
