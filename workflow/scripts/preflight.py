"""Print what a run will take, and refuse one that cannot fit."""

from collections.abc import Iterable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.costs.preflight import preflight
from convs2s.costs.requests import requests_report, submission_of
from convs2s.paper.cells import planned_cells
from convs2s.pipeline.job import prefix_of
from convs2s.pipeline.process import failures_in_one_line

snakemake: Any


def _from(folder: Path, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that are made where Snakemake runs."""
    with chdir(folder):
        yield from lines


with failures_in_one_line():
    root = Path(snakemake.scriptdir).parents[1]
    prefix = prefix_of(snakemake.log[0], snakemake.params.stated_log)
    command = snakemake.params.command
    submission = submission_of(command, Path(snakemake.params.started_in))
    settings, log = load_for_job(snakemake.config, root), Path(snakemake.log[0]).absolute()
    requests = requests_report(
        command,
        submission,
        targets=snakemake.params.targets,
        prefix=snakemake.rule.removesuffix("preflight"),
        snakefiles=[root / "workflow/Snakefile", *root.glob("rules/*.smk")],
    )
    here = Path.cwd()
    with chdir(prefix or "."):  # below which all of a module's files are, those of the user too
        preflight(
            settings,
            tasks=snakemake.params.tasks,
            cells=planned_cells(settings, snakemake.params.results, snakemake.params.planned),
            benchmarks=Path(snakemake.params.benchmarks),
            is_local=submission.is_local,
            log=log,
            requests=_from(here, requests),
        )
