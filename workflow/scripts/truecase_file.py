"""Write one side of a split in its true case."""

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
