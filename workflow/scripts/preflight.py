"""Print the budget of a run, and refuse a run that cannot fit."""

from collections.abc import Iterable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

from convs2s.config.load import load_for_job
from convs2s.costs.preflight import preflight
from convs2s.costs.requests import requests_report, submission_of
from convs2s.errors import failures_in_one_line
from convs2s.paper.cells import planned_cells
from convs2s.pipeline.job import prefix_of

snakemake: Any


def _from(folder: Path, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines; each is computed with ``folder``, where Snakemake runs, as working directory."""
    with chdir(folder):
        yield from lines


with failures_in_one_line():
    root = Path(snakemake.scriptdir).parents[1]
    prefix = prefix_of(snakemake.log[0], snakemake.params.stated_log)
    command = snakemake.params.command
    submission = submission_of(command, Path(snakemake.params.started_in))
    settings = load_for_job(snakemake.config, root)
    log = Path(snakemake.log[0]).absolute()
    requests = requests_report(
        command,
        submission,
        targets=snakemake.params.targets,
        prefix=snakemake.rule.removesuffix("preflight"),
        snakefiles=[root / "workflow/Snakefile", *root.glob("rules/*.smk")],
    )
    here = Path.cwd()
    # All files of a module, also those of the user, are below the module's prefix.
    with chdir(prefix or "."):
        preflight(
            settings,
            tasks=snakemake.params.tasks,
            cells=planned_cells(
                settings, snakemake.params.results, snakemake.params.planned
            ),
            benchmarks=Path(snakemake.params.benchmarks),
            is_local=submission.is_local,
            log=log,
            requests=_from(here, requests),
        )
