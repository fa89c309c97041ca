"""Write a score, a table or a page as an HTML page that Snakemake's report can show."""

from pathlib import Path
from typing import Any

from convs2s.pages.render import show_in_report
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    show_in_report(source=Path(inputs[0]), output=Path(snakemake.output[0]))
