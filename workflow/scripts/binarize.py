"""Write the token store of a split, or of a shard of it."""

from pathlib import Path
from typing import Any

from convs2s.data.dataset import binarize
from convs2s.data.store import shard_rows
from convs2s.pipeline.job import job
from convs2s.text.clean import read_report

snakemake: Any

with job(snakemake.log[0]):
    source, target = map(Path, snakemake.input.text)
    source_vocabulary, target_vocabulary = map(Path, snakemake.input.vocabularies)
    # Joint codes are one file for both sides, and word models have none.
    codes: list[Path | None] = [*map(Path, snakemake.input.codes)] or [None]
    rows = None
    if counted := snakemake.input.get("pairs"):  # a shard: the validation text has none
        rows = shard_rows(snakemake.wildcards.scatteritem, read_report(Path(counted))["kept"])
    binarize(
        (source, target),
        (codes[0], codes[-1]),
        (source_vocabulary, target_vocabulary),
        (Path(snakemake.output.store), Path(snakemake.output.facts)),
        snakemake.params.facts,
        rows,
    )
