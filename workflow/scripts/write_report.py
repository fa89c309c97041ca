"""Write the report: everything that a run of the paper made, in one HTML file."""

from pathlib import Path
from typing import Any

from convs2s.config.paper import Table
from convs2s.paper.report.write import write_report
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    write_report(
        tables={name: Table(**printed) for name, printed in snakemake.params.printed.items()},
        shown=snakemake.params.shown,
        scale=snakemake.params.header["scale"],
        stand_in=snakemake.params.header["stand_in"],
        attention_of=snakemake.params.attention_of,
        inputs=list(snakemake.input),
        output=Path(snakemake.output[0]),
    )
