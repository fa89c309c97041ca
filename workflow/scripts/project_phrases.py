"""Project the states of an encoder after phrases to two dimensions."""

from pathlib import Path
from typing import Any

from convs2s.config.paper import Phrases
from convs2s.manifest import run_manifest
from convs2s.model_file import check_runs
from convs2s.paper.phrase_states import project_phrases
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    check_runs(inputs)
    project_phrases(
        model=Path(snakemake.input.model),
        phrases=Phrases.model_validate(snakemake.params.phrases),
        header=snakemake.params.header,
        stand_in=snakemake.params.stand_in,
        output=Path(snakemake.output[0]),
        manifest=run_manifest(inputs),
    )
