"""The costs of all tables and figures, written as a Markdown page and as CSV."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.costs.exhibits import Cost, PaperCosts, costs
from convs2s.files.text import write_text
from convs2s.paper.cells import Cell
from convs2s.paper.table_formats import Sheet, csv, markdown
from convs2s.paper.tables import headings_of, scale_name

_NAME = "Table or figure"
_SCALE = "Scale"
_JOBS = "Other jobs, core-hours"


def write_costs(
    settings: Settings,
    *,
    cells: Mapping[str, Sequence[Cell]],
    benchmarks: Path,
    outputs: Sequence[Path],
) -> None:
    """Write the costs of each table and figure (`exhibits.costs`), and the papers' training times.

    Args:
        settings: the configuration.
        cells: name of each table or figure -> its cells.
        benchmarks: the folder of Snakemake's benchmark files.
        outputs: the files to write. The suffix of each chooses its format: .md or .csv.
    """
    paper_costs = costs(settings, cells, benchmarks)
    sheet = _sheet(settings, paper_costs)
    parts = [markdown(sheet)]
    if paper_costs.total.printed.stated:
        # One more # makes the title of the second table a subheading.
        parts.append(f"#{markdown(_printed_sheet(paper_costs))}")
    formats = {".md": "\n".join(parts), ".csv": csv(sheet)}
    for output in outputs:
        write_text(output, formats[output.suffix])


def _sheet(settings: Settings, paper_costs: PaperCosts) -> Sheet:
    """Return the table of costs: a row for each exhibit, one for shared jobs, and one for all."""
    headings = headings_of(
        settings,
        "Costs: what each table and figure takes",
        "The hours of a training are its time, multiplied by the number of GPUs, or by the number "
        "of threads if it has no GPU. The hours of other jobs are processor time. "
        "docs/preflight.md explains each column.",
    )
    rows = [_row(name, cost) for name, cost in paper_costs.exhibits.items()]
    total = _row("all, each run once", paper_costs.total)
    shared = dict.fromkeys(total, "")  # the same columns, empty
    shared[_NAME] = "shared by several"
    shared[_JOBS] = _hours(paper_costs.shared)
    rows += [shared, total]
    for row in rows:
        row[_SCALE] = scale_name(settings)
    # In the Markdown table, the headings state the scale.
    return Sheet(headings, rows, _NAME, left_out=(_SCALE,))


def _row(name: str, cost: Cost) -> dict[str, str]:
    """Return a row of the table of costs; cells that do not apply are empty."""
    row = {
        _NAME: name,
        "Trainings": str(cost.trainings),
        "Finished": str(cost.finished),
        "Core-hours": "",
        "GPU-hours": "",
        _JOBS: _hours(cost.jobs),
        "The papers' GPU-hours": "",
        "Models whose hours they do not state": str(len(cost.printed.unstated)),
    }
    if cost.measured:
        row["Core-hours"] = _hours(cost.measured.cores)
        row["GPU-hours"] = _hours(cost.measured.gpus)
    elif cost.finished:
        row["Core-hours"] = "not measured"
        row["GPU-hours"] = "not measured"
    if cost.printed.stated:
        row["The papers' GPU-hours"] = _hours(cost.printed.hours)
    elif cost.printed.unstated:
        row["The papers' GPU-hours"] = "not stated"
    return row


def _printed_sheet(paper_costs: PaperCosts) -> Sheet:
    """Return the table of the training times that the papers state.

    Each row also names the tables and figures that need the model.
    """
    rows = []
    for training in paper_costs.total.printed.stated:
        names = [
            name
            for name, cost in paper_costs.exhibits.items()
            if training in cost.printed.stated
        ]
        row = {
            "Model": training.model,
            "Text": training.text,
            "GPU-hours": _hours(training.hours),
            "Source": training.source,
            "Tables and figures": ", ".join(names),
        }
        rows.append(row)
    headings = ["The hours of one training of each model, as the papers state them"]
    return Sheet(headings, rows, "Model")


def _hours(hours: float) -> str:
    """Format hours with two decimals, or with four if they are more than 0 and less than 1."""
    return f"{hours:.4f}" if 0 < hours < 1 else f"{hours:.2f}"
