"""Score a decoded test set."""

from pathlib import Path
from typing import Any

from convs2s.files import sha256
from convs2s.manifest import manifest
from convs2s.scoring.evaluate import evaluate
from convs2s.workflow import job

snakemake: Any

with job(snakemake.log[0]):
    evaluate(
        Path(snakemake.input.translations),
        Path(snakemake.input.raw),
        Path(snakemake.input.tokenized),
        Path(snakemake.output[0]),
        test_set=snakemake.wildcards.testset,
        manifest={
            **snakemake.params.facts,
            "sha256": {path: sha256(path) for path in snakemake.input},
            **manifest(),
        },
    )
