"""The costs of all tables and figures as a page for people and as comma-separated values."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.costs.exhibits import Cost, PaperCosts, PrintedCost, costs
from convs2s.files.text import write_text
from convs2s.paper.cells import Cell
from convs2s.paper.table_formats import Sheet, csv, markdown
from convs2s.paper.trained import Hours

_NAME, _SCALE, _JOBS = "Table or figure", "Scale", "Other jobs, core-hours"


def write_costs(
    settings: Settings,
    *,
    cells: Mapping[str, Sequence[Cell]],
    benchmarks: Path,
    outputs: Sequence[Path],
) -> None:
    """Write what each table and figure has taken, and will take, as ``costs`` tells it.

    The suffix of an output says its format: .md for a person, or .csv.
    """
    paper_costs = costs(settings, cells, benchmarks)
    sheet = _sheet(settings, paper_costs)
    parts = [markdown(sheet)]
    if paper_costs.all_printed.stated:
        parts.append(f"#{markdown(_printed_sheet(paper_costs))}")
    formats = {".md": "\n".join(parts), ".csv": csv(sheet)}
    for output in outputs:
        write_text(output, formats[output.suffix])


def _sheet(settings: Settings, paper_costs: PaperCosts) -> Sheet:
    """Return the table of costs: a row for each exhibit, for what several share, and for all."""
    scale, stand_in = settings.options.scale, settings.scale.stand_in
    headings = [
        "Costs: what each table and figure takes",
        *([f"STAND-IN DATA: {stand_in}"] if stand_in else []),
        f"Scale: {scale}. Hours of trainings are time times GPUs, or without one "
        "times threads; of other jobs processor time. Each column: docs/preflight.md.",
    ]
    exhibits, printed = paper_costs.exhibits, paper_costs.printed
    rows = [_row(name, cost, printed[name]) for name, cost in exhibits.items()]
    total = _row("all, each run once", paper_costs.total, paper_costs.all_printed)
    shared = {_NAME: "shared by several", _JOBS: _hours(paper_costs.shared)}
    rows += [{**dict.fromkeys(total, ""), **shared}, total]
    described = scale + (" (STAND-IN DATA)" if stand_in else "")
    rows = [{**row, _SCALE: described} for row in rows]
    return Sheet(headings, rows, _NAME, left_out=(_SCALE,))


def _row(name: str, cost: Cost, printed: PrintedCost) -> dict[str, str]:
    measured = _pair(cost.measured, "not measured" if cost.finished else "")
    to_come = _pair(cost.to_come, "not measured") if cost.trainings else ("", "")
    stated = _hours(printed.hours) if printed.stated else "not stated"
    return {
        _NAME: name,
        "Trainings": str(cost.trainings),
        "Finished": str(cost.finished),
        "Core-hours": measured[0],
        "GPU-hours": measured[1],
        _JOBS: _hours(cost.jobs),
        "To come, core-hours": to_come[0],
        "To come, GPU-hours": to_come[1],
        "To come, trainings not measured": str(cost.unknown),
        "The papers' GPU-hours": stated if printed.stated or printed.unstated else "",
        "Models whose hours they do not state": str(len(printed.unstated)),
    }


def _printed_sheet(paper_costs: PaperCosts) -> Sheet:
    """Return the table of what the papers state, with the exhibits that rest on it."""
    rows = [
        {
            "Model": training.model,
            "Text": training.text,
            "GPU-hours": _hours(training.hours),
            "Source": training.source,
            "Tables and figures": ", ".join(
                name for name, printed in paper_costs.printed.items() if training in printed.stated
            ),
        }
        for training in paper_costs.all_printed.stated
    ]
    headings = ["One training of each model of the papers, as far as they state it"]
    return Sheet(headings, rows, "Model")


def _pair(hours: Hours | None, absent: str) -> tuple[str, str]:
    """Write core-hours and GPU-hours, or why there are none."""
    return (absent, absent) if hours is None else (_hours(hours.cores), _hours(hours.gpus))


def _hours(hours: float) -> str:
    return f"{hours:.2f}" if hours >= 1 or not hours else f"{hours:.4f}"
