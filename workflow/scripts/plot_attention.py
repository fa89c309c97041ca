"""Draw where each decoder layer looks while it writes one sentence."""

from pathlib import Path
from typing import Any

from convs2s.model_file import check_runs
from convs2s.paper.attention import plot_attention
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    check_runs(snakemake.input)
    plot_attention(
        model=Path(snakemake.input.model),
        translations=Path(snakemake.input.translations),
        line=int(snakemake.wildcards.line),
        heading=snakemake.params.heading,
        outputs=list(map(Path, snakemake.output)),
    )
