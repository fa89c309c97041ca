"""Learn BPE codes from word counts."""

from pathlib import Path
from typing import Any

from convs2s.data.dataset import learn_bpe
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    learn_bpe(
        words=list(map(Path, inputs)),
        output=Path(snakemake.output[0]),
        merges=snakemake.params.merges,
    )
