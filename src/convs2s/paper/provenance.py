"""What stands beside a value of ours: runs, test set, metric, models, machine, day, command.

Each function returns a text for one cell of a table, empty where there is nothing to say.
"""

import re
from collections.abc import Iterable

from convs2s.config.costs import KnownTraining
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.paper.cells import MEASURES
from convs2s.paper.results import Result

_DIGITS_OF_CHECKSUM = 10


def runs(result: Result) -> str:
    """Return the ensemble, or how many of the runs are there."""
    if result.entries and result.cell.runs[0].startswith("ensemble"):
        return result.cell.runs[0]
    return f"{len(result.entries)} of {len(result.cell.runs)}"


def seeds(result: Result, digits: int) -> str:
    """Return each run with its score."""
    return "; ".join(f"{run} {score:.{digits}f}" for run, score in result.scores.items())


def testset(result: Result) -> str:
    """Return task and test set with its number of lines, and the n-best list that is rescored."""
    cell = result.cell
    if cell.testset is None or "{testset}" not in MEASURES[cell.measure].file:
        return ""
    lines = f" ({result.lines:,} lines)" if result.lines is not None else ""
    listed = f", list of {cell.n_best}" if cell.n_best else ""
    return f"{cell.task} {cell.testset}{lines}{listed}"


def metric(result: Result) -> str:
    """Return what was measured, with the signatures of the metric."""
    return " ".join([MEASURES[result.cell.measure].label, *result.signatures])


def models(result: Result) -> str:
    """Return the first digits of the SHA-256 of each model file."""
    digests = (digest for entry in result.entries.values() for digest in entry.models)
    return " ".join(dict.fromkeys(digest[:_DIGITS_OF_CHECKSUM] for digest in digests))


def processors(result: Result) -> str:
    """Return what the numbers were computed on."""
    return _each(entry.processor for entry in result.entries.values())


def days(result: Result) -> str:
    """Return the first and the last day of the runs."""
    found = sorted({entry.date for entry in result.entries.values()})
    return " to ".join(dict.fromkeys([found[0], found[-1]])) if found else ""


def notes(result: Result, ledger: str | None) -> str:
    """Return which runs failed, where others are there, and whose the marked ones are."""
    failed = [f"{run} failed: {why}" for run, why in (result.failures or {}).items()]
    others = [f"{PUBLISHED_MARK} from the published ledger {ledger}"] if result.published else []
    return "; ".join([*others, *(failed if result.entries else [])])


PUBLISHED_MARK = "†"
"""What marks a value that rests on a published ledger."""


def command(results: Iterable[Result], scale: str) -> str:
    """Return the command that runs what is missing of a row's cells."""
    wanted = [
        path
        for result in results
        for run, path in zip(result.cell.runs, result.cell.paths, strict=True)
        if run not in result.entries
    ]
    paths = _braced(dict.fromkeys(wanted))
    return f"snakemake {' '.join(paths)} --config scale={scale}" if paths else ""


def cost(results: Iterable[Result], settings: Settings) -> str:
    """Return what the trainings of a row's missing runs take, as config/costs.yaml has it.

    Trained already is what another column of the row has a number of that was made here.
    """
    row = list(results)
    there = {
        (result.cell.task, result.cell.model, member)
        for result in row
        for run in result.entries.keys() - result.published
        for member in members(run)
    }
    missing = [
        (settings.tasks[result.cell.task], result.cell.model, member)
        for result in row
        for run in result.missing
        for member in members(run)
        if (result.cell.task, result.cell.model, member) not in there
    ]
    trained = {(task.text_name, model, one) for task, model, one in missing if not task.released}
    return "; ".join(
        _trainings(sum(one[:2] == both for one in trained), settings.costs.training(*both))
        for both in sorted({one[:2] for one in trained})
    )


def _trainings(count: int, known: KnownTraining | None) -> str:
    trainings = "1 training" if count == 1 else f"{count} trainings"
    if known is None:
        return f"{trainings}, hours not measured"
    return f"{trainings}, {count * known.hours:,.1f} {known.device}-hours"


def _each(texts: Iterable[str | None]) -> str:
    return "; ".join(dict.fromkeys(text for text in texts if text))


def _braced(paths: Iterable[str]) -> list[str]:
    """Write paths that differ in the seed alone as one, which a shell takes apart again."""
    seeds_of: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        parts = re.fullmatch(r"(.*/seed)([0-9]+)(/[^/]*)", path)
        before, seed, after = parts.groups() if parts else (path, "", "")
        seeds_of.setdefault((before, after), []).append(seed)
    return [
        f"{before}{{{','.join(found)}}}{after}" if len(found) > 1 else f"{before}{found[0]}{after}"
        for (before, after), found in seeds_of.items()
    ]
