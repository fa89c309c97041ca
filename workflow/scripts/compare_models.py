"""Compare two models of a task on a test set."""

from pathlib import Path
from typing import Any

from convs2s.files import sha256
from convs2s.manifest import manifest
from convs2s.pipeline.job import job
from convs2s.scoring.comparison import write_comparison

snakemake: Any

with job(snakemake.log[0]):
    paths = zip(snakemake.input.baseline, snakemake.input.system, strict=True)
    pairs = {Path(first).parent.name: (Path(first), Path(second)) for first, second in paths}
    write_comparison(
        pairs,
        Path(snakemake.input.raw),
        Path(snakemake.input.tokenized),
        Path(snakemake.output.text),
        Path(snakemake.output.json),
        stand_in=snakemake.params.stand_in,
        named={
            **{name: snakemake.wildcards[name] for name in ("task", "baseline", "system")},
            "decoding": snakemake.wildcards.decoding,
            "scale": snakemake.params.scale,
        },
        test_set=snakemake.wildcards.testset,
        manifest={
            "decoding": snakemake.params.decoding,
            "sha256": {path: sha256(path) for path in snakemake.input},
            **manifest(),
        },
    )
