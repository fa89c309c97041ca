"""Fetch a file from a mirror or from its original address."""

import os
from pathlib import Path
from typing import Any

from convs2s.download.download import download_file
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    download_file(
        output=Path(snakemake.output[0]),
        generated_mirror=next(iter(inputs), None),
        # Not one of the params, because a new mirror must not make downloaded files out of date.
        mirrors=list(map(os.path.expanduser, snakemake.config.get("mirrors", []))),
        **snakemake.params.source,
    )
