"""docs/results.md: every table of a scale from a ledger alone, with no results folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.files.text import atomic_text
from convs2s.layout import Layout
from convs2s.paper import bleu_by_layers
from convs2s.paper.cells import cells
from convs2s.paper.claims import judge, printed_claims
from convs2s.paper.ledger import LedgerEntry
from convs2s.paper.results import Result, results
from convs2s.paper.table_formats import markdown
from convs2s.paper.tables import sheet

_OF_WHAT_IS_MISSING = ("Command", "Cost")
"""Footnotes that a table of a results folder has; the page is read by those who run nothing."""


def write_results_page(
    settings: Settings,
    entries: Sequence[LedgerEntry],
    *,
    ledger: str,
    discussion: str,
    output: Path,
) -> None:
    """Write the page, and its plots into the folder of the same name beside it.

    Args:
        settings: the configuration, at the scale of the page.
        entries: the lines of a ledger; runs of other inputs than the configuration's are not shown.
        ledger: what the ledger is called.
        discussion: Markdown that stands before the numbers.
        output: the Markdown file.
    """
    found = _found(settings, entries)
    figures = output.with_suffix("")
    figures.mkdir(exist_ok=True)
    plots = {name: f"{figures.name}/{name}.svg" for name in _drawn(settings)}
    for name, address in plots.items():
        bleu_by_layers.draw(settings, name, found[name], [output.parent / address])
    with atomic_text(output) as stream:
        stream.write(_page(settings, found, ledger, discussion, plots))


def _page(
    settings: Settings,
    found: Mapping[str, Sequence[Result]],
    ledger: str,
    discussion: str,
    plots: Mapping[str, str],
) -> str:
    """Return the page as Markdown."""
    parts = [*_head(settings, found, ledger), discussion, *_claims(settings, found)]
    for name, shown in found.items():
        printed = sheet(settings, name, shown)
        rows = [
            {heading: text for heading, text in row.items() if heading not in _OF_WHAT_IS_MISSING}
            for row in printed.rows
        ]
        footnotes = {
            heading: form
            for heading, form in printed.footnotes.items()
            if heading not in _OF_WHAT_IS_MISSING
        }
        parts.append("#" + markdown(replace(printed, rows=rows, footnotes=footnotes)))
        if name in plots:
            parts.append(f"![{settings.paper[name].title}]({plots[name]})\n")
    return "\n".join(parts)


def _found(settings: Settings, entries: Sequence[LedgerEntry]) -> dict[str, list[Result]]:
    """Return table -> what its cells show."""
    layout = Layout(settings.scale.results_dir, settings.scale.downloads_dir)
    return {
        name: list(results(cells(settings, name, layout.run_files), entries))
        for name in settings.paper
    }


def _drawn(settings: Settings) -> list[str]:
    """Return the figures whose rows have a place on an axis of layers."""
    return [name for name, printed in settings.paper.items() if printed.is_by_layers]


def _head(settings: Settings, found: Mapping[str, Sequence[Result]], ledger: str) -> Iterator[str]:
    """Yield the title, what the page is made from, and how much of it is there."""
    scale = settings.options.scale
    shown = [result for table in found.values() for result in table]
    wanted = {one for result in shown for one in result.cell.fingerprints}
    there = {entry.fingerprint for result in shown for entry in result.entries.values()}
    yield f"# What did runs at scale {scale} give?\n"
    made = f"Made from `{ledger}` by `convs2s results` ([ledger.md](ledger.md))"
    yield f"{made}; no number of a table is typed."
    yield f"{len(there):,} of {len(wanted):,} files of numbers that the tables rest on are there.\n"


def _claims(settings: Settings, found: Mapping[str, Sequence[Result]]) -> Iterator[str]:
    """Yield the claims with their verdicts, as sections."""
    runs = {
        result.cell.address: list(result.entries.values())
        for table in found.values()
        for result in table
    }
    yield from ("#" + markdown(one) for one in printed_claims(settings, judge(settings, runs)))
