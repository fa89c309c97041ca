"""Score a decoded test set."""

from pathlib import Path
from typing import Any

from convs2s.manifest import run_manifest
from convs2s.pipeline.job import job
from convs2s.scoring.evaluation import evaluate_bleu
from convs2s.scoring.tuned_settings import decoding_as_run

snakemake: Any

with job(snakemake) as inputs:
    translations = Path(snakemake.input.translations)
    decoding = decoding_as_run(
        snakemake.params.decoding, snakemake.input.tuned, translations
    )
    evaluate_bleu(
        translations=translations,
        raw=Path(snakemake.input.raw),
        tokenized=Path(snakemake.input.tokenized),
        output=Path(snakemake.output[0]),
        test_set=snakemake.wildcards.testset,
        tokenize=snakemake.params.tokenize,
        metrics=list(snakemake.params.metrics),
        manifest=run_manifest(inputs, **snakemake.params.run, decoding=decoding),
        counts=next(map(Path, snakemake.input.counts), None),
    )
