"""Score a decoded test set."""

from pathlib import Path
from typing import Any

from convs2s.files import sha256
from convs2s.manifest import manifest
from convs2s.pipeline.job import job
from convs2s.pipeline.workflow import with_length_penalty
from convs2s.scoring.evaluate import evaluate

snakemake: Any

with job(snakemake.log[0]):
    facts = snakemake.params.facts
    evaluate(
        Path(snakemake.input.translations),
        Path(snakemake.input.raw),
        Path(snakemake.input.tokenized),
        Path(snakemake.output[0]),
        test_set=snakemake.wildcards.testset,
        manifest={
            **facts,
            "decoding": with_length_penalty(facts["decoding"], snakemake.input.tuned),
            "sha256": {path: sha256(path) for path in snakemake.input},
            **manifest(),
        },
    )
