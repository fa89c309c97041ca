"""Bring a file from a mirror or from upstream."""

from pathlib import Path
from typing import Any

from convs2s.data.download import download
from convs2s.workflow import job

snakemake: Any

with job(snakemake.log[0]):
    download(output=Path(snakemake.output[0]), **snakemake.params.source)
