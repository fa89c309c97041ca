"""docs/results.md: every table of a scale from a ledger alone, with no results folder."""

from collections.abc import Sequence
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.files.text import atomic_text
from convs2s.layout import Layout
from convs2s.paper import bleu_by_layers
from convs2s.paper.cells import cells
from convs2s.paper.claims import judge, printed_claims
from convs2s.paper.ledger import LedgerEntry
from convs2s.paper.results import results
from convs2s.paper.table_formats import markdown
from convs2s.paper.tables import for_readers, sheet


def write_results_page(
    settings: Settings,
    entries: Sequence[LedgerEntry],
    *,
    ledger: str,
    discussion: str,
    output: Path,
) -> None:
    """Write the page as Markdown, and its plots into the folder of the same name beside it.

    ``entries`` of other inputs than the configuration's are not shown; ``ledger`` is the name of
    their file, ``discussion`` Markdown that stands before the numbers.
    """
    layout = Layout(settings.scale.results_dir, settings.scale.downloads_dir)
    tables = {
        name: results(cells(settings, name, layout.run_files), entries) for name in settings.paper
    }
    shown = [result for table in tables.values() for result in table]
    wanted = {fingerprint for result in shown for fingerprint in result.cell.fingerprints}
    made = {entry.fingerprint for result in shown for entry in result.entries.values()}
    judged = judge(
        settings, {result.cell.address: list(result.entries.values()) for result in shown}
    )
    parts = [
        f"# What did runs at scale {settings.options.scale} give?\n",
        f"Made from `{ledger}` by `convs2s results` ([ledger.md](ledger.md)); no number of a table "
        "is typed.",
        f"{len(made):,} of {len(wanted):,} files of numbers that the tables rest on are there.\n",
        discussion,
        *("#" + markdown(printed) for printed in printed_claims(settings, judged)),
    ]
    figures = output.with_suffix("")
    figures.mkdir(exist_ok=True)
    for name, table in tables.items():
        parts.append("#" + markdown(for_readers(sheet(settings, name, table))))
        if settings.paper[name].is_by_layers:
            plot = figures / f"{name}.svg"
            bleu_by_layers.draw(settings, name, table, [plot])
            parts.append(f"![{settings.paper[name].title}]({figures.name}/{plot.name})\n")
    with atomic_text(output) as stream:
        stream.write("\n".join(parts))
