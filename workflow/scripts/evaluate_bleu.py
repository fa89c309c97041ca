"""Score a decoded test set."""

from pathlib import Path
from typing import Any

from convs2s.manifest import run_manifest
from convs2s.pipeline.job import job
from convs2s.scoring.evaluation import evaluate_bleu
from convs2s.scoring.tuned_settings import tuned_decoding

snakemake: Any

with job(snakemake):
    decoding = tuned_decoding(snakemake.params.decoding, snakemake.input.tuned)
    evaluate_bleu(
        translations=Path(snakemake.input.translations),
        raw=Path(snakemake.input.raw),
        tokenized=Path(snakemake.input.tokenized),
        output=Path(snakemake.output[0]),
        test_set=snakemake.wildcards.testset,
        manifest=run_manifest(
            snakemake.input, **snakemake.params.run, decoding=decoding.model_dump(mode="json")
        ),
    )
