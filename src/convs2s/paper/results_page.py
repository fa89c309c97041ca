"""docs/results.md: what a scale's runs gave, from a ledger alone, with no results folder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.files.text import atomic_text
from convs2s.layout import Layout
from convs2s.paper import bleu_by_layers
from convs2s.paper.cells import cells
from convs2s.paper.charts import save_figure
from convs2s.paper.claims import judge, printed_claims
from convs2s.paper.ledger import LedgerEntry
from convs2s.paper.results import Result, results
from convs2s.paper.table_formats import Sheet, markdown
from convs2s.paper.tables import for_readers, sheet, table_rows
from convs2s.paper.trends import small_trend

_HEADLINES = ("table1", "table2", "lstm_table1")
"""The exhibits whose values stand on the page itself."""

_TREND_WIDTH, _TRENDS = 100, 8  # pixels of a panel, and panels in a row: two of each exhibit

_NO_BREAK = "\N{NO-BREAK SPACE}"

_Results = Mapping[str, Sequence[Result]]  # of each exhibit


def write_results_page(
    settings: Settings,
    entries: Sequence[LedgerEntry],
    *,
    ledger: str,
    discussion: str,
    output: Path,
) -> None:
    """Write the page as Markdown, and the folder of the same name beside it.

    The page has headline values, plots, verdicts and the discussion; the folder its plots, and
    pages of every table and of every test. ``entries`` of other inputs than the configuration's are
    not shown; ``ledger`` is the name of their file, ``discussion`` Markdown.
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
    claims, tests = printed_claims(settings, judged)
    folder = output.with_suffix("")
    folder.mkdir(exist_ok=True)
    plots = _draw(settings, tables, folder)
    parts = [
        f"# What did runs at scale {settings.options.scale} give?\n",
        f"Made from `{ledger}` by `convs2s results` ([ledger.md](ledger.md)); no number of a table "
        f"is typed. {len(made):,} of {len(wanted):,} files of numbers are there. Behind this page: "
        f"[every table]({folder.name}/tables.md), [every test of a claim]({folder.name}/claims.md)."
        "\n",
        "#" + markdown(_headlines(settings, tables)),
        *plots,
        "#" + markdown(_verdicts(claims)),
        discussion,
    ]
    pages = {
        output: parts,
        folder / "claims.md": ["\n#".join(map(markdown, (claims, tests)))],
        folder / "tables.md": [
            f"# Every table at scale {settings.options.scale}\n",
            *(
                "#" + markdown(for_readers(sheet(settings, name, table)))
                for name, table in tables.items()
            ),
        ],
    }
    for page, texts in pages.items():
        with atomic_text(page) as stream:
            stream.write("\n".join(texts))


def _headlines(settings: Settings, tables: _Results) -> Sheet:
    """Return the values of ours in the headline exhibits beside the paper's."""
    rows = []
    for name in _HEADLINES:
        printed = settings.paper[name]
        column = printed.columns[0].name
        for row in table_rows(settings, name, tables[name]):
            if row[f"{column} (ours)"].number is not None:
                task = row[printed.group_label].text if printed.group_label else ""
                rows.append(
                    {
                        "Exhibit": printed.title.partition(":")[0].replace(" ", _NO_BREAK),
                        "System": f"{task} {row[printed.system_label].text}".strip(),
                        f"{column} (paper)": row[f"{column} (paper)"].text,
                        f"{column} (ours)": row[f"{column} (ours)"].text.replace(" ", _NO_BREAK),
                    }
                )
    stand_in = settings.scale.stand_in
    headings = ["Headline values", *([f"STAND-IN DATA: {stand_in}"] if stand_in else [])]
    return Sheet(headings, rows, "System", {}, {}, ())


def _verdicts(claims: Sheet) -> Sheet:
    """Return a line for each claim that was run; the heading counts the others."""
    interval = "95% interval"
    judged = [
        {**row, interval: row[interval].replace(" ", _NO_BREAK)}
        for row in claims.rows
        if row["Verdict"] != "not run"
    ]
    others = len(claims.rows) - len(judged)
    about = f"Of {len(claims.rows)} claims {others} were not run or are not tested: the page of "
    return replace(
        claims,
        headings=[*claims.headings, f"{about}tests says why."],
        rows=judged,
        footnotes={},
        left_out=("Claim", "Source", "Comparisons", "Notes"),
    )


def _draw(settings: Settings, tables: _Results, folder: Path) -> list[str]:
    """Draw the trends of all exhibits and BLEU by layers; return the Markdown that shows them."""
    stand_in, panels, shown = settings.scale.stand_in, [], []
    for name, table in tables.items():
        exhibit = settings.paper[name].title.partition(":")[0]
        for panel in small_trend(settings, name, table):
            panels.append(panel.properties(width=_TREND_WIDTH, title=f"{exhibit}, {panel.title}"))
    if panels:
        plot = folder / "trends.svg"
        save_figure(panels, [plot], stand_in=stand_in, columns=_TRENDS, shares_colors=False)
        shown.append(f"![The papers' trends beside ours]({folder.name}/{plot.name})\n")
    for name, table in tables.items():
        if settings.paper[name].is_by_layers:
            plot = folder / f"{name}.svg"
            bleu_by_layers.draw(settings, name, table, [plot], columns=2)
            shown.append(f"![{settings.paper[name].title}]({folder.name}/{plot.name})\n")
    return shown
