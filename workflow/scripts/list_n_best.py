"""Write the n-best list of a test set."""

from pathlib import Path
from typing import Any

from convs2s.decoding.rescoring import list_n_best
from convs2s.model_file import check_runs
from convs2s.pipeline.job import job
from convs2s.scoring.tuned_settings import tuned_decoding

snakemake: Any

with job(snakemake):
    check_runs(snakemake.input)
    list_n_best(
        models=list(map(Path, snakemake.input.models)),
        source=Path(snakemake.input.source),
        output=Path(snakemake.output[0]),
        settings=tuned_decoding(snakemake.params.decoding, snakemake.input.tuned),
        device=snakemake.config.get("device", "auto"),
        threads=snakemake.threads,
    )
