"""Plot the attention of each decoder layer for some sentences."""

from pathlib import Path
from typing import Any

from convs2s.model_file import check_runs
from convs2s.paper.attention import plot_attention
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    check_runs(inputs)
    lines = snakemake.params.lines
    for line, svg, png in zip(
        lines, snakemake.output.svg, snakemake.output.png, strict=True
    ):
        plot_attention(
            model=Path(snakemake.input.model),
            translations=Path(snakemake.input.translations),
            line=line,
            heading=f"{snakemake.params.heading} · sentence {line}",
            outputs=[Path(svg), Path(png)],
        )
