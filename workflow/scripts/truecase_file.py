"""Truecase one side of the training or validation text."""

from pathlib import Path
from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.truecase import truecase_file

snakemake: Any

with job(snakemake):
    truecase_file(
        text=Path(snakemake.input.text),
        truecaser=Path(snakemake.input.truecaser),
        output=Path(snakemake.output[0]),
    )
