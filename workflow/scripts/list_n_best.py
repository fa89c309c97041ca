"""Write the n-best list of a test set."""

from pathlib import Path
from typing import Any

from convs2s.decoding.n_best_files import list_n_best
from convs2s.pipeline.job import job
from convs2s.pipeline.workflow import with_length_penalty

snakemake: Any

with job(snakemake.log[0]):
    list_n_best(
        list(map(Path, snakemake.input.models)),
        Path(snakemake.input.text),
        Path(snakemake.output[0]),
        with_length_penalty(snakemake.params.settings, snakemake.input.tuned),
        device=snakemake.resources.device,
        threads=snakemake.resources.torch_threads,
    )
