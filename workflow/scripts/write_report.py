"""Write the report: all results of the papers in one HTML file."""

from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.paper.cells import cells_of_tables
from convs2s.paper.report.write import write_report
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake) as inputs:
    settings = load_for_job(snakemake.config, Path(snakemake.scriptdir).parents[1])
    results = snakemake.output[0].rpartition("/paper/")[0]
    failures: dict[str, str] = {}
    for table in snakemake.params.shown.values():
        failures |= table["failures"]
    write_report(
        settings,
        cells=cells_of_tables(settings, results),
        failures=failures,
        inputs=inputs,
        output=Path(snakemake.output[0]),
    )
