"""Plot BLEU by the number of layers."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.paper.bleu_by_layers import plot_bleu_by_layers
from convs2s.paper.cells import cells
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    settings = load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1])
    table = snakemake.wildcards.table
    results = snakemake.output[0].rpartition("/paper/")[0]
    plot_bleu_by_layers(
        settings,
        table,
        cells=cells(settings, table, results),
        scores=list(snakemake.input.scores),
        published=next(iter(snakemake.input.published), None),
        outputs=list(map(Path, snakemake.output[:2])),
        points=Path(snakemake.output[2]),
    )
