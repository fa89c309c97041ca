"""Learn in which case the words of one side are written."""

from pathlib import Path
from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.truecase import learn_truecaser

snakemake: Any

with job(snakemake):
    learn_truecaser(text=Path(snakemake.input.text), output=Path(snakemake.output[0]))
