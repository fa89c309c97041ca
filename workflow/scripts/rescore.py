"""Choose from an n-best list by two models' scores, and score the choice."""

from pathlib import Path
from typing import Any

from convs2s.files import sha256
from convs2s.manifest import manifest
from convs2s.pipeline.job import job
from convs2s.scoring.rescoring import write_rescoring
from convs2s.text.preparation import Preparation

snakemake: Any

with job(snakemake.log[0]):
    facts = snakemake.params.facts
    preparation = Preparation(facts["preparation"], facts["languages"]["target"])
    write_rescoring(
        Path(snakemake.input.list),
        Path(snakemake.input.raw),
        Path(snakemake.input.tokenized),
        {name: Path(path) for name, path in snakemake.output.items()},
        restore=preparation.restore,
        stand_in=snakemake.params.stand_in,
        named={
            "task": snakemake.wildcards.task,
            "baseline": f"{snakemake.wildcards.model} {snakemake.wildcards.run}",
            "decoding": snakemake.wildcards.decoding,
            "scorer": f"{snakemake.wildcards.scorer} {snakemake.wildcards.scorer_run}",
            "scale": snakemake.params.scale,
        },
        test_set=snakemake.wildcards.testset,
        manifest={
            "sha256": {path: sha256(path) for path in snakemake.input},
            **manifest(),
        },
    )
