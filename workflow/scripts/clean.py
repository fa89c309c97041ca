"""Turn a part of the training text into tokens, and drop the pairs that are no good."""

from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.clean import clean_corpus
from convs2s.text.preparation import Preparation

snakemake: Any

with job(snakemake.log[0]):
    source_in, target_in = snakemake.input
    source_out, target_out = snakemake.output.sides
    source, target = (
        Preparation(snakemake.params.preparation, language.partition("_")[0])  # en_title is English
        for language in snakemake.params.languages
    )
    clean_corpus(
        source_in,
        target_in,
        source_out,
        target_out,
        snakemake.output.report[0],
        **snakemake.params.limits,
        prepare=(source.prepare, target.prepare),
    )
