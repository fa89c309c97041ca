"""Count the lines of validation and test text that are also in the training text."""

from pathlib import Path
from typing import Any

from convs2s.data.overlap import EvaluationText, count_overlap, files_by_set
from convs2s.pipeline.job import job
from convs2s.text.preparation import Preparation

snakemake: Any

with job(snakemake):
    name = snakemake.params.preparation
    source, target = (
        Preparation(name, language).prepare for language in snakemake.params.languages
    )
    count_overlap(
        train=(Path(snakemake.input.source), Path(snakemake.input.target)),
        evaluation=EvaluationText(
            files_by_set(snakemake.input.evaluation), (source, target)
        ),
        output=Path(snakemake.output[0]),
    )
