"""Tune the length penalty on a development set's n-best list."""

from pathlib import Path
from typing import Any

from convs2s.files import sha256
from convs2s.manifest import manifest
from convs2s.pipeline.job import job
from convs2s.scoring.length_penalty import write_length_penalty
from convs2s.text.preparation import Preparation

snakemake: Any

with job(snakemake.log[0]):
    facts, wildcards = snakemake.params.facts, snakemake.wildcards
    preparation = Preparation(facts["preparation"], facts["languages"]["target"])
    write_length_penalty(
        Path(snakemake.input.list),
        Path(snakemake.input.raw),
        Path(snakemake.input.tokenized),
        Path(snakemake.output.tsv),
        Path(snakemake.output.json),
        restore=preparation.restore,
        named={
            "stand_in": snakemake.params.stand_in,
            **{name: wildcards[name] for name in ("task", "model", "run", "decoding")},
            "scale": snakemake.params.scale,
            "test_set": wildcards.testset,
        },
        manifest={
            "sha256": {path: sha256(path) for path in snakemake.input},
            **manifest(),
        },
    )
