"""Write docs/results.md: the results of a scale, computed from a ledger alone."""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.errors import UserError
from convs2s.files.text import write_text
from convs2s.paper import bleu_by_layers
from convs2s.paper.cells import Cell, cells_of_tables
from convs2s.paper.charts import Panel, save_figure
from convs2s.paper.claim_tables import printed_claims
from convs2s.paper.claims import judge
from convs2s.paper.curves import TRAININGS, plateau_panels
from convs2s.paper.ledger import LedgerEntry
from convs2s.paper.results import results, runs_by_cell
from convs2s.paper.table_formats import Sheet, as_one_text, markdown
from convs2s.paper.tables import for_readers, sheet
from convs2s.paper.trends import trend_panels

_TREND_WIDTH = 100  # pixels: the width of a panel
# Panels in a row. Each table or figure has two: the paper's and ours.
_PANELS_IN_ROW = 8

_Cells = Mapping[str, Sequence[Cell]]  # name of a table or figure -> its cells


def write_results_page(
    settings: Settings,
    entries: Sequence[LedgerEntry],
    *,
    ledger: str,
    discussion: str,
    output: Path,
) -> None:
    """Write the page as Markdown, and a folder of the same name beside it.

    The page has headline values, plots, verdicts and the discussion. The folder has the plots,
    tables.md with every table, and claims.md with every claim and test. Entries whose inputs are
    not in the configuration are not shown. ``ledger`` is the name of the file that ``entries`` were
    read from. ``discussion`` is Markdown.

    Raises:
        UserError: the output's name does not end in .md, or the ledger has no run of the scale.
    """
    folder = output.with_suffix("")
    if output.suffix != ".md" or folder.is_file():
        raise UserError(
            f"{output}: expected the name of a page that ends in .md, and no file named {folder}"
        )
    cells = cells_of_tables(settings)
    tables = {name: results(table, entries) for name, table in cells.items()}
    every_cell = list(chain.from_iterable(cells.values()))
    # The fingerprints of all runs that the tables need, and of those that the ledger has.
    wanted = {record.fingerprint for cell in every_cell for record in cell.records}
    runs = runs_by_cell(every_cell, entries)
    made = {entry.fingerprint for entry in chain.from_iterable(runs.values())}
    if not made:
        scale = settings.options.scale
        raise UserError(
            f"{ledger}: has no run of scale {scale}; name its own scale with --scale"
        )
    claims, tests = printed_claims(settings, judge(settings, runs))
    folder.mkdir(exist_ok=True)
    plots, plateaus = _draw(settings, tables, folder)
    sheets = {name: for_readers(sheet(settings, name, tables[name])) for name in tables}
    short = []
    for name in ("table1", "table2"):
        if name in sheets:
            # A row without a metric has no value of ours.
            short.append(_with_value(sheets[name], "Metric", {"Notes"}))
    left_out = {"Claim", "Source", "Comparisons", "Tests"}
    decided = _with_value(claims, "Verdict", left_out)
    *headlines, verdicts = _without_repetition([*short, decided])
    parts = [
        f"# Results at scale {settings.options.scale}\n",
        f"Made by `convs2s results` from `{ledger}` ([ledger.md](ledger.md)), which has "
        f"{len(made):,} of {len(wanted):,} files of numbers. More: [every table]"
        f"({folder.name}/tables.md), [every claim and test]({folder.name}/claims.md).\n",
        *headlines,
        *plots,
        verdicts,
        f"{_others(claims, decided)} ([Why]({folder.name}/claims.md).)\n",
        discussion,
    ]
    every_table = [f"# Every table at scale {settings.options.scale}\n"]
    for printed in (*sheets.values(), *_costs(tables)):
        # One more # puts the table one level below the title of the page.
        every_table.append(f"#{markdown(printed)}")
    write_text(output, "\n".join(filter(None, parts)))
    write_text(folder / "claims.md", f"{markdown(claims)}\n#{markdown(tests)}")
    write_text(folder / "tables.md", "\n".join([*every_table, *plateaus]))


def _others(claims: Sheet, decided: Sheet) -> str:
    """Return the claims that are not in ``decided`` as a text, grouped by their verdict."""
    claims_of: dict[str, list[str]] = {}
    for row in claims.rows:
        if row not in decided.rows:
            verdict = as_one_text(row["Verdict"])
            says = as_one_text(row["What the paper says"])
            claims_of.setdefault(verdict, []).append(says)
    return " ".join(
        f"**{verdict.capitalize()}**: {' '.join(says)}"
        for verdict, says in claims_of.items()
    )


def _with_value(
    table: Sheet,
    column: str,
    left_out: Set[str],
) -> Sheet:
    """Return a table with only the rows that have a value in ``column``, and without some columns.

    ``left_out`` are the columns to leave out.
    """
    no_values = ("", "not run", "not tested", "no verdict")
    return replace(
        table,
        rows=[row for row in table.rows if as_one_text(row[column]) not in no_values],
        left_out=[*table.left_out, *left_out],
    )


def _without_repetition(tables: Sequence[Sheet]) -> Iterator[str]:
    """Yield each table as Markdown, one level below the title of the page; "" if it has no rows.

    A heading line that several tables share is printed only with the first of them.
    """
    printed: set[str] = set()
    for table in tables:
        if not table.rows:
            yield ""
            continue
        new = [line for line in table.headings if line not in printed]
        yield f"#{markdown(replace(table, headings=new))}"
        printed.update(table.headings)


def _costs(tables: _Cells) -> Iterator[Sheet]:
    """Yield a table of the hours that the trainings of each table or figure took.

    Yield nothing if the ledger has no hours of trainings.
    """
    hours: dict[tuple[str, str, str], float] = {}  # task, model, run -> hours
    for cell in tables.get(TRAININGS, ()):
        if cell.measure == "training_hours":
            for run, score in cell.scores.items():
                hours[cell.task, cell.model, run] = score
    if not hours:
        return
    trainings = {}
    for name, table in tables.items():
        trainings[name] = {training for cell in table for training in cell.trainings}
    trainings["all, each training once"] = set().union(*trainings.values())
    rows = []
    for name, wanted in trainings.items():
        timed = [hours[training] for training in wanted if training in hours]
        rows.append(
            {
                "Table or figure": name,
                "Trainings": str(len(wanted)),
                "With hours in the ledger": str(len(timed)),
                # The order of a set is arbitrary, and fsum gives the same sum in any order.
                "GPU- and thread-hours": f"{math.fsum(timed):.2f}",
            }
        )
    yield Sheet(["Costs: all updates of the trainings"], rows, "Table or figure")


def _draw(
    settings: Settings,
    tables: _Cells,
    folder: Path,
) -> tuple[list[str], list[str]]:
    """Draw the trends, BLEU by layers, and the plateaus of validation perplexity into a folder.

    Return two lists of Markdown: one with the trends and BLEU by layers, for the page itself, and
    one with the plateaus, for a page in the folder.
    """
    stand_in = settings.scale.stand_in
    panels: list[Panel] = []
    plots: list[str] = []
    plateaus: list[str] = []
    for name, table in tables.items():
        exhibit = settings.paper[name].title.partition(":")[0]  # such as "Table 1"
        for panel in chain(*trend_panels(settings, name, table, is_small=True)):
            panels.append(
                {**panel, "width": _TREND_WIDTH, "title": [exhibit, panel["title"]]}
            )
    if panels:
        plot = folder / "trends.svg"
        save_figure(
            panels,
            [plot],
            stand_in=stand_in,
            columns=_PANELS_IN_ROW,
            shares_colors=False,
        )
        plots.append(f"![The papers' trends beside ours]({folder.name}/{plot.name})\n")
    for name, table in tables.items():
        if settings.paper[name].is_by_layers:
            plot = folder / f"{name}.svg"
            bleu_by_layers.draw(settings, name, table, [plot], columns=2)
            plots.append(
                f"![{settings.paper[name].title}]({folder.name}/{plot.name})\n"
            )
    if panels_of_plateaus := plateau_panels(settings, tables.get(TRAININGS, ())):
        plot = folder / "plateaus.svg"
        sized = [{**panel, "width": _TREND_WIDTH} for panel in panels_of_plateaus]
        title = "Validation perplexity by epoch, as a share of the best epoch's"
        save_figure(
            sized, [plot], heading=[title], stand_in=stand_in, columns=_PANELS_IN_ROW
        )
        plateaus.append(f"![{title}]({plot.name})\n")
    return plots, plateaus
