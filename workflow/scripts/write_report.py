"""Write the report: everything that a run of the paper made, in one HTML file."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.paper.cells import cells_from_plain
from convs2s.paper.report.write import write_report
from convs2s.pipeline.job import job, prefix_of

snakemake: Any

with job(snakemake):
    prefix = prefix_of(snakemake.output[0], snakemake.params.page)
    shown = snakemake.params.shown
    write_report(
        load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1]),
        cells={name: cells_from_plain(table["cells"], prefix) for name, table in shown.items()},
        failures={
            prefix + path: why
            for table in shown.values()
            for path, why in table["failures"].items()
        },
        attention_of=snakemake.params.attention_of,
        inputs=list(snakemake.input),
        output=Path(snakemake.output[0]),
    )
