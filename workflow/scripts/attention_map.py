"""Draw where each decoder layer looks while it writes one sentence."""

from pathlib import Path
from typing import Any

from convs2s.decoding.attention import attention_of
from convs2s.paper.figures import attention_maps
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]):
    attention = attention_of(
        Path(snakemake.input.model),
        Path(snakemake.input.translations),
        int(snakemake.wildcards.line),
    )
    attention_maps(
        attention.weights, attention.source, attention.target, list(map(Path, snakemake.output))
    )
