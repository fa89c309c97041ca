"""Write the papers' claims with verdicts from the runs in the ledger."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.paper.claim_tables import write_claims
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    write_claims(
        load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1]),
        ledger=Path(snakemake.input.ledger),
        outputs=list(map(Path, snakemake.output)),
    )
