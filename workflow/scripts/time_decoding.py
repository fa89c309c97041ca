"""Time the translation of a test set."""

from pathlib import Path
from typing import Any

from convs2s.decoding.speed import time_translation
from convs2s.files import sha256
from convs2s.manifest import manifest
from convs2s.pipeline.job import job
from convs2s.pipeline.workflow import with_length_penalty

snakemake: Any

with job(snakemake.log[0]):
    facts = snakemake.params.facts
    settings = with_length_penalty(facts["decoding"], snakemake.input.tuned)
    time_translation(
        list(map(Path, snakemake.input.models)),
        Path(snakemake.input.text),
        Path(snakemake.output[0]),
        settings,
        device=snakemake.wildcards.device,
        threads=snakemake.threads,
        manifest={
            **facts,
            "decoding": settings,
            "sha256": {path: sha256(path) for path in snakemake.input},
            **manifest(),
        },
    )
