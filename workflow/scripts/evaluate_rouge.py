"""Score the outputs of a test set by ROUGE."""

from pathlib import Path
from typing import Any

from convs2s.config.task import RougeSettings
from convs2s.manifest import run_manifest
from convs2s.pipeline.job import job
from convs2s.scoring.evaluation import evaluate_rouge
from convs2s.scoring.tuned_settings import decoding_as_run

snakemake: Any

with job(snakemake) as inputs:
    translations = Path(snakemake.input.translations)
    decoding = decoding_as_run(
        snakemake.params.decoding, snakemake.input.tuned, translations
    )
    settings = RougeSettings.model_validate(snakemake.params.rouge)
    exceptions = snakemake.input.exceptions or None
    # The manifest names only files that may be published. The user's file of exceptions may not.
    recorded = [path for path in inputs if path != exceptions]
    evaluate_rouge(
        translations=translations,
        references=[Path(path) for path in snakemake.input.references],
        exceptions=exceptions and Path(exceptions),
        output=Path(snakemake.output[0]),
        test_set=snakemake.wildcards.testset,
        settings=settings,
        manifest=run_manifest(
            recorded,
            **snakemake.params.run,
            decoding=decoding,
            rouge=settings.model_dump(mode="json"),
        ),
        counts=next(map(Path, snakemake.input.counts), None),
    )
