"""Translate a sentence and write the attention of each decoder layer."""

from pathlib import Path
from typing import Any

from convs2s.manifest import run_manifest
from convs2s.model_file import check_runs
from convs2s.paper.attention import attend_to_example, sentence_of
from convs2s.pipeline.job import job
from convs2s.scoring.tuned_settings import tuned_decoding

snakemake: Any

with job(snakemake) as inputs:
    check_runs(inputs)
    attend_to_example(
        model=Path(snakemake.input.model),
        sentence=sentence_of(
            snakemake.params.sentence, snakemake.input.text, snakemake.params.line
        ),
        settings=tuned_decoding(snakemake.params.decoding, snakemake.input.tuned),
        header=snakemake.params.header,
        stand_in=snakemake.params.stand_in,
        output=Path(snakemake.output[0]),
        manifest=run_manifest(inputs),
    )
