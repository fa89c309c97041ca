"""Turn one side of a part of the corpus into tokens."""

from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.preparation import prepare_file

snakemake: Any

with job(snakemake.log[0]):
    language = snakemake.wildcards.lang.partition("_")[0]  # en_title is English
    prepare_file(snakemake.input[0], snakemake.output[0], snakemake.params.preparation, language)
