"""Show a score, a table or a page in Snakemake's report, as a page that opens in it."""

from pathlib import Path
from typing import Any

from convs2s.pages.render import show_in_report
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    show_in_report(source=Path(snakemake.input[0]), output=Path(snakemake.output[0]))
