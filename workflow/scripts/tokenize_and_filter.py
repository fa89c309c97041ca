"""Split a part of the training text, or the validation text, into words, and filter its pairs."""

from pathlib import Path
from typing import Any

from convs2s.data.overlap import EvaluationText, files_by_set
from convs2s.files.text import NO_MARK, read_line_pairs
from convs2s.pipeline.job import job
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.preparation import Preparation

snakemake: Any

with job(snakemake):
    filtering = dict(snakemake.params.filtering)
    source, target = (
        Preparation(filtering["preparation"], language).prepare
        for language in filtering.pop("languages")
    )
    # There are files only if the filter drops pairs that share a line with these sets.
    evaluation = EvaluationText(
        files_by_set(snakemake.input.get("evaluation", [])), (source, target)
    )
    tokenize_and_filter(
        read_line_pairs(snakemake.input.source, snakemake.input.target, mark=NO_MARK),
        sides=(Path(snakemake.output.source), Path(snakemake.output.target)),
        report=Path(snakemake.output.report),
        prepare=(source, target),
        shares_line=evaluation.shares_line,
        **filtering,
    )
