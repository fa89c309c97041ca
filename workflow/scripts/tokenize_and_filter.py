"""Turn a part of the training text into words, and drop the pairs that are no good."""

from pathlib import Path
from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.preparation import Preparation

snakemake: Any

with job(snakemake):
    name, languages = snakemake.params.preparation, snakemake.params.languages
    source, target = (Preparation(name, language).prepare for language in languages)
    tokenize_and_filter(
        raw=(Path(snakemake.input.source), Path(snakemake.input.target)),
        sides=(Path(snakemake.output.sides[0]), Path(snakemake.output.sides[1])),
        report=Path(snakemake.output.report),
        preparation=name,
        prepare=(source, target),
        **snakemake.params.limits,
    )
