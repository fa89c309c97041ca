"""Plot the projected states of phrases."""

from pathlib import Path
from typing import Any

from convs2s.paper.phrase_map import plot_phrase_states
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    plot_phrase_states(
        projections=list(map(Path, inputs)),
        outputs=list(map(Path, snakemake.output[:2])),
        points=Path(snakemake.output.points),
    )
