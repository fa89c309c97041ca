"""Learn which case the words of one side have."""

from pathlib import Path
from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.truecase import write_truecaser

snakemake: Any

with job(snakemake.log[0]):
    write_truecaser(Path(snakemake.input[0]), Path(snakemake.output[0]))
