"""Plot BLEU by sentence length and by the rarity of words."""

from pathlib import Path
from typing import Any

from convs2s.paper.bleu_by_length import plot_bleu_by_length
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    plot_bleu_by_length(
        names=snakemake.params.names,
        system=Path(snakemake.input.system),
        baseline=next(map(Path, snakemake.input.get("baseline", [])), None),
        source=Path(snakemake.input.source),
        reference=Path(snakemake.input.reference),
        vocabulary=Path(snakemake.input.vocabulary),
        stand_in=snakemake.params.stand_in,
        outputs=list(map(Path, snakemake.output[:2])),
        points=Path(snakemake.output.points),
    )
