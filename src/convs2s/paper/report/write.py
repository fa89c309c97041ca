"""The report: what a run of the paper made, in one HTML file that needs nothing else."""

import base64
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import get_args

import vl_convert
from pydantic import TypeAdapter

from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.errors import failures_of_file
from convs2s.files.text import read_json, write_text
from convs2s.pages.render import asset, render_page
from convs2s.paper.attention_maps import attention_maps, read_example, spread_note
from convs2s.paper.bleu_by_layers import depths, layer_panels
from convs2s.paper.cells import Cell
from convs2s.paper.charts import VEGA_LITE, Panel, as_spec
from convs2s.paper.claims import JudgedClaim, Verdict, printed_claims, rows_of_findings
from convs2s.paper.curves import TRAININGS, learning_curves, plateau_panels
from convs2s.paper.ledger import LedgerEntry, read_ledger
from convs2s.paper.report.examples import examples
from convs2s.paper.results import Result, results
from convs2s.paper.table_formats import Sheet
from convs2s.paper.tables import TableValue, for_readers, sheet, table_rows
from convs2s.paper.trained import Hours, Training, read_training
from convs2s.paper.trends import trend_panels

_OF_LINE = ("Claim", "Says", "Source", "Verdict of the claim")
"""Columns of a claim's tests that its line says."""

_MOST_LINES = 15
"""Of a table or list that is shown at once: a longer one is folded, a table with its plots."""

PagePart = dict[str, object]  # what a part of report.html.j2 shows, by the names that it has there

_MACHINE = ("processor", "gpu", "system", "threads", "python", "convs2s", "revision")

Trainings = Mapping[tuple[str, str, str], Training]  # task, model and run -> the training


@dataclass(frozen=True)
class ShownCell:
    """A cell of a table of the report."""

    text: str
    number: float | None  # its value, by which it is sorted; None without one
    origin: str  # paper, ours, absent (of ours, without a value) or text
    runs: tuple[Training, ...] = ()  # the trainings that it rests on


@dataclass(frozen=True)
class ShownTable:
    """A table of the report: its columns' names, and rows of a cell for each."""

    header: Sequence[str]
    rows: Sequence[Sequence[ShownCell]]
    notes: Sequence[str] = ()  # footnotes

    def count(self, origin: str) -> int:
        """Return how many cells are of a kind."""
        return sum(cell.origin == origin for row in self.rows for cell in row)


def write_report(
    settings: Settings,
    *,
    cells: Mapping[str, Sequence[Cell]],
    failures: Mapping[str, str],
    attention_of: str | None,
    inputs: Collection[str],
    output: Path,
) -> None:
    """Write the report as one HTML file; links to logs are relative to it.

    ``cells`` are table -> those of its values that the workflow measures, ``failures`` path of a
    run's numbers -> why it failed, ``attention_of`` is the figure that shows attention maps.
    ``inputs`` are the files that exist: beside the output the ledger, the claims and figures;
    elsewhere histories, training.json, attention maps, translations and references.
    """
    paths = [Path(path) for path in inputs]
    beside = {path.name: path for path in paths if path.parent == output.parent}
    entries = read_ledger(beside["ledger.jsonl"])
    trained = trainings(entries, paths)
    maps = list[PagePart]()
    for path in paths:
        if not path.name.endswith(".example.json"):
            continue
        example = read_example(path)
        source = example.source_tokens
        panels = attention_maps(example.weights, source, example.target_tokens, has_legend=False)
        described = "attention: source on the y-axis, target on the x-axis"
        charts = [as_spec(panel, described) for panel in panels]
        maps.append({"example": example, "charts": charts, "note": spread_note(len(source))})
    exhibits = []
    for name in settings.paper:
        shown = results(cells[name], entries, failures)
        picture = beside.get(f"{name}.svg")
        attention = maps if name == attention_of else ()
        exhibits.append(_exhibit(settings, name, shown, trained, picture, attention))
    logs = {}
    for run in trained.values():
        log = f"../logs/{run.task}/{run.model}/{run.run}/train.log"
        if (output.parent / log).is_file():
            logs[run.anchor] = log
    recorded = {names: run for names, run in trained.items() if run.summary or run.epochs}
    content = {
        "scale": settings.options.scale,
        "stand_in": settings.scale.stand_in,
        "exhibits": exhibits,
        "claims": _claims(settings, beside["claims.json"]),
        "verdicts": get_args(Verdict),
        "most_lines": _MOST_LINES,
        "models": _models(recorded),
        "recorded": {run.anchor for run in recorded.values()},
        "logs": logs,
        "examples": examples(entries, paths),
        "total": cost_of(trained.values()),
        "environment": environment(trained.values()),
        "dates": sorted({entry.date for entry in entries}),
        "revisions": sorted({entry.revision for entry in entries if entry.revision}),
    }
    write_text(output, _render(content))


def _models(recorded: Trainings) -> list[PagePart]:
    """Return the models of trainings with a record, with learning curves of those with a history.

    The trainings are sorted by their names.
    """
    models = list[PagePart]()
    for (task, model), group in groupby(recorded, key=lambda names: names[:2]):
        runs = [recorded[names] for names in group]
        known = {run.run: run.epochs for run in runs if run.epochs}
        panels = learning_curves(known) if known else {}
        charts = {what: as_spec(panel, f"{what} by epoch") for what, panel in panels.items()}
        best = min((one.valid_perplexity for run in known.values() for one in run), default=None)
        models.append({"task": task, "model": model, "runs": runs, "charts": charts, "best": best})
    return models


def _claims(settings: Settings, path: Path) -> list[PagePart]:
    """Return the claims: what the line of each says, and the columns and rows of its tests."""
    claims = read_claims(path)
    parts = list[PagePart]()
    for claim, line in zip(claims, printed_claims(settings, claims)[0].rows, strict=True):
        tests = Sheet([], rows_of_findings([claim]), "Verdict", left_out=_OF_LINE)
        header, rows, _ = tests.printed()
        parts.append({"line": line, "header": header, "rows": rows if claim.findings else []})
    return parts


def _render(content: Mapping[str, object]) -> str:
    """Return the page; DataTables with jQuery, and Vega come out of installed packages."""
    tables = files("itables").joinpath("html")
    styles = map(asset, ("page.css", "attention_view.css", "report.css"))
    programs = [
        # The tables' program first, as it leaves jQuery as `$`: the page's own uses both.
        tables.joinpath("dt_bundle.js").read_text("utf-8"),
        vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE),
        asset("attention_view.js") + asset("attention.js"),
        asset("report.js"),
    ]
    return render_page(
        "report.html.j2",
        content,
        programs=programs,
        styles=[tables.joinpath("dt_bundle.css").read_text("utf-8"), *styles],
    )


def _exhibit(
    settings: Settings,
    name: str,
    shown: Sequence[Result],
    trained: Trainings,
    picture: Path | None,
    attention: Sequence[PagePart],
) -> PagePart:
    """Return a table or figure, its values beside ours.

    Each has charts; attention or the picture of a plot drawn before (a data: address) besides.
    """
    printed = settings.paper[name]
    above, table, every = shown_tables(settings, name, shown, trained)
    is_long = len(table.rows) > _MOST_LINES
    charts = trend_panels(settings, name, shown)
    folded: list[list[Panel]] = []
    if printed.is_by_layers:
        networks = list(depths(printed, settings.scale.shown_rows(printed), shown))
        charts = [layer_panels(networks, on_stand_in=settings.scale.stand_in is not None)]
    elif is_long:
        charts, folded = folded, charts
    if name == TRAININGS:
        for panel in plateau_panels(settings, shown):
            charts.append([panel.properties(title=f"Validation perplexity, {panel.title}")])

    def specs(columns: Iterable[Iterable[Panel]]) -> list[list[dict[str, object]]]:
        specs = []
        for panels in columns:
            specs.append([as_spec(panel, printed.title) for panel in panels])
        return specs

    address = None
    if picture and not printed.is_by_layers and not attention:
        encoded = base64.b64encode(picture.read_bytes()).decode("ascii")
        address = f"data:image/svg+xml;base64,{encoded}"
    return {
        "name": name,
        "printed": printed,
        "above": [line for line in above[1:] if not line.startswith("STAND-IN")],
        "table": table,
        "every": every,
        "is_long": is_long,
        "trend": specs(trend_panels(settings, name, shown, is_small=True)),
        "charts": specs(charts),
        "folded": specs(folded),
        "picture": address,
        "attention": attention,
        "cost": cost_of(run for row in every.rows for cell in row for run in cell.runs),
    }


def trainings(entries: Iterable[LedgerEntry], present: Collection[Path]) -> Trainings:
    """Return the trainings that a ledger rests on, sorted, an ensemble's members among them."""
    folders: dict[tuple[str, str, str], Path] = {}
    # A training of one's own is found where it was made, not where it was published.
    for entry in sorted(entries, key=lambda entry: entry.origin is None):
        for member in members(entry.run.run):
            folder = Path(entry.file).parent.with_name(member)
            folders[entry.run.task, entry.run.model, member] = folder
    trained = {}
    for names in sorted(folders):
        trained[names] = read_training(*names, folders[names], lambda path: path in present)
    return trained


def shown_tables(
    settings: Settings, name: str, results: Sequence[Result], trained: Trainings
) -> tuple[list[str], ShownTable, ShownTable]:
    """Return a table of config/paper.yaml as it is printed, below its lines, and every column."""
    values = table_rows(settings, name, results)
    written = for_readers(sheet(settings, name, results))
    header, texts, notes = written.printed()
    columns = [heading for heading in written.filled if heading != "Scale"]
    printed = []
    every = []
    for row, texts_of_row in zip(values, texts, strict=True):
        shown = []
        for heading, text in zip(header, texts_of_row, strict=True):
            shown.append(replace(_cell(row[heading], trained), text=text))
        printed.append(shown)
        every.append([_cell(row[heading], trained) for heading in columns])
    return written.above, ShownTable(header, printed, notes), ShownTable(columns, every)


def _cell(value: TableValue, trained: Trainings) -> ShownCell:
    origin: str = value.of or "text"
    if origin == "ours" and value.number is None:
        origin = "absent" if value.text else "text"
    runs: dict[str, Training] = {}
    for entry in value.result.entries.values() if value.result else ():
        for member in members(entry.run.run):
            training = trained.get((entry.run.task, entry.run.model, member))
            if training is not None:
                runs[training.anchor] = training
    return ShownCell(value.text, value.number, origin, tuple(runs.values()))


@dataclass(frozen=True)
class TimeOfTrainings:
    """What trainings took, each counted once; the hours are of those with a history here."""

    trainings: int
    untimed: int  # how many have no history here
    hours: Hours


def cost_of(trained: Iterable[Training]) -> TimeOfTrainings:
    """Return what trainings took, each counted once."""
    distinct = {run.anchor: run for run in trained}.values()
    timed = [run.hours for run in distinct if run.hours is not None]
    return TimeOfTrainings(len(distinct), len(distinct) - len(timed), sum(timed, Hours()))


def environment(trained: Iterable[Training]) -> Mapping[str, Mapping[str, int]]:
    """Return, of what manifests say -> each value -> the number of trainings that it made."""
    counts: dict[str, Counter[str]] = {}
    for run in trained:
        stated = {key: run.manifest.get(key) for key in _MACHINE}
        stated |= run.manifest.get("packages", {})
        for key, value in stated.items():
            if value:
                counts.setdefault(key, Counter())[str(value)] += 1
    return counts


def read_claims(path: Path) -> list[JudgedClaim]:
    """Return the claims with their verdicts; a UserError says that the JSON file has none."""
    with failures_of_file(str(path), "not a list of claims; delete the file and ask for it again"):
        stated = TypeAdapter(dict[str, object]).validate_python(read_json(path))["claims"]
        return TypeAdapter(list[JudgedClaim]).validate_python(stated)
