"""Draw BLEU by the number of layers."""

from pathlib import Path
from typing import Any

from convs2s.config.paper import Table
from convs2s.paper.bleu_by_layers import plot_bleu_by_layers
from convs2s.paper.cells import Cell
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    plot_bleu_by_layers(
        printed=Table.model_validate(snakemake.params.printed),
        cells=[Cell(**cell) for cell in snakemake.params.cells],
        scores=list(snakemake.input.scores),
        stand_in=snakemake.params.stand_in,
        outputs=list(map(Path, snakemake.output[:2])),
        points=Path(snakemake.output.points),
    )
