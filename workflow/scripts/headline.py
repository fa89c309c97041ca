"""Write a task's bleu.txt and bleu.json."""

from itertools import product
from pathlib import Path
from typing import Any

from convs2s.pipeline.job import job
from convs2s.scoring.headline import headline

snakemake: Any

with job(snakemake.log[0]):
    settings = snakemake.params.headline
    runs = product(settings["tests"], snakemake.params.runs)
    headline(
        dict(zip(runs, map(Path, snakemake.input), strict=True)),
        Path(snakemake.output.text),
        Path(snakemake.output.json),
        task=snakemake.wildcards.task,
        model=settings["model"],
        decoding=settings["decoding"],
        stand_in=snakemake.params.stand_in,
        scale=snakemake.params.scale,
    )
