"""Write what the token stores contain, and what a reader of scores should know of them."""

from pathlib import Path
from typing import Any

from convs2s.data.dataset_counts import Encoding, count_dataset
from convs2s.data.overlap import files_by_set
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    files = snakemake.input
    count_dataset(
        train=Path(files.train),
        valid=Path(files.valid),
        tests=files_by_set(files.tests),
        encoding=Encoding(
            bpe_codes=list(map(Path, files.bpe_codes)),
            vocabularies=list(map(Path, files.vocabularies)),
            truecasers=list(map(Path, files.truecasers)),
        ),
        overlap=Path(files.overlap),
        table=Path(snakemake.output.table),
        counts=Path(snakemake.output.counts),
        most_tokens=snakemake.params.most_tokens,
    )
