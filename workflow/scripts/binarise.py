"""Write a split's token store."""

from pathlib import Path
from typing import Any

from convs2s.data.dataset import binarise
from convs2s.workflow import job

snakemake: Any

with job(snakemake.log[0]):
    source, target = map(Path, snakemake.input.text)
    source_vocabulary, target_vocabulary = map(Path, snakemake.input.vocabularies)
    # Joint codes are one file for both sides, and word models have none.
    codes: list[Path | None] = [*map(Path, snakemake.input.codes)] or [None]
    binarise(
        (source, target),
        (codes[0], codes[-1]),
        (source_vocabulary, target_vocabulary),
        (Path(snakemake.output.store), Path(snakemake.output.facts)),
        snakemake.params.facts,
    )
