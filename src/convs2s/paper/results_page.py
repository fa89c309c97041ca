"""docs/results.md: every table of a scale from a ledger alone, with no results folder."""

from collections.abc import Iterator, Sequence

from convs2s.config.settings import Settings
from convs2s.paper.cells import cells
from convs2s.paper.ledger_entry import LedgerEntry
from convs2s.paper.results import results
from convs2s.paper.table_formats import markdown
from convs2s.paper.tables import sheet
from convs2s.pipeline.layout import Layout


def results_page(settings: Settings, entries: Sequence[LedgerEntry], ledger: str) -> str:
    """Return the page of a scale's results as Markdown.

    Args:
        settings: the configuration, at the scale of the page.
        entries: the lines of a ledger; runs of other inputs than the configuration's are not shown.
        ledger: what the ledger is called.
    """
    return "\n".join([*_head(settings, entries, ledger), *_tables(settings, entries)])


def _head(settings: Settings, entries: Sequence[LedgerEntry], ledger: str) -> Iterator[str]:
    """Yield the title, what the page is made from, and how much of it is there."""
    scale = settings.options.scale
    shown = {
        fingerprint
        for name in settings.paper
        for cell in cells(settings, name, _layout(settings).run_files)
        for fingerprint in cell.fingerprints
    }
    there = {entry.fingerprint for entry in entries} & shown
    yield f"# What did runs at scale {scale} give?\n"
    yield f"Made from `{ledger}` by `convs2s results` ([ledger.md](ledger.md)); none is typed."
    yield f"{len(there):,} of {len(shown):,} files of numbers that the tables rest on are there.\n"


def _tables(settings: Settings, entries: Sequence[LedgerEntry]) -> Iterator[str]:
    for name in settings.paper:
        measured = cells(settings, name, _layout(settings).run_files)
        yield "#" + markdown(sheet(settings, name, results(measured, entries)))


def _layout(settings: Settings) -> Layout:
    return Layout(settings.scale.results_dir, settings.scale.downloads_dir)
