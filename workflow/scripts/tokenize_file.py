"""Split one side of a test set into words."""

from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.preparation import tokenize_file

snakemake: Any

with job(snakemake) as inputs:
    tokenize_file(
        raw=inputs[0],
        output=snakemake.output[0],
        name=snakemake.params.preparation,
        language=snakemake.params.language,
    )
