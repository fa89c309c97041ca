"""Write the training text of a corpus as words, without the pairs that the filter drops."""

from itertools import chain
from pathlib import Path
from typing import Any

from convs2s.config.file_reference import files_by_location
from convs2s.data.corpus import RawText, prepare_training_text
from convs2s.data.overlap import EvaluationText, files_by_set
from convs2s.pipeline.job import job
from convs2s.pipeline.sources import note_sources
from convs2s.text.preparation import Preparation

snakemake: Any

with job(snakemake):
    pairs = snakemake.params.pairs
    filtering = dict(snakemake.params.filtering)
    source, target = (
        Preparation(filtering["preparation"], language).prepare
        for language in filtering.pop("languages")
    )
    files = files_by_location(chain.from_iterable(pairs), snakemake.input.files)
    # There are files only if the filter drops pairs that share a line with these sets.
    evaluation = EvaluationText(
        files_by_set(snakemake.input.evaluation), (source, target)
    )
    prepare_training_text(
        RawText(pairs, files, snakemake.params.hold_out),
        sides=(Path(snakemake.output.source), Path(snakemake.output.target)),
        report=Path(snakemake.output.report),
        prepare=(source, target),
        shares_line=evaluation.shares_line,
        **filtering,
    )
    note_sources(snakemake.output.source, pairs)
