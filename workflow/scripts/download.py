"""Bring a file from a mirror or from upstream."""

from pathlib import Path

from snakemake.script import snakemake

from convs2s.data.download import download
from convs2s.workflow import job

with job(snakemake.log[0]):
    download(output=Path(snakemake.output[0]), **snakemake.params.source)
