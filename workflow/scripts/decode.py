"""Translate a test set."""

from pathlib import Path
from typing import Any

from convs2s.decoding.files import translate_file
from convs2s.pipeline.job import job
from convs2s.pipeline.workflow import with_length_penalty

snakemake: Any

with job(snakemake.log[0]):
    translate_file(
        list(map(Path, snakemake.input.models)),
        Path(snakemake.input.text),
        (Path(snakemake.output.lines), Path(snakemake.output.text)),
        with_length_penalty(snakemake.params.settings, snakemake.input.tuned),
        device=snakemake.resources.device,
        threads=snakemake.resources.torch_threads,
    )
