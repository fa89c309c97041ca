"""The costs of all tables and figures as a page for people and as comma-separated values."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from convs2s.config.settings import Settings
from convs2s.files.text import atomic_text
from convs2s.paper.cells import Cell
from convs2s.paper.costs import Cost, PaperCosts, PrintedCost, all_printed, costs
from convs2s.paper.table_formats import Sheet, csv, markdown
from convs2s.paper.trained import Hours

_NAME, _SCALE = "Table or figure", "Scale"


def write_costs(
    settings: Settings,
    *,
    cells: Mapping[str, Sequence[Cell]],
    benchmarks: Path,
    outputs: Sequence[Path],
) -> None:
    """Write what each table and figure has taken, and is expected to take.

    Args:
        settings: the configuration.
        cells: table -> its cells, whose runs are made here, beside the files of their numbers.
        benchmarks: the folder of Snakemake's benchmark files.
        outputs: the files to write; the suffix says the format: .md for a person, or .csv.

    Raises:
        UserError: the record of a training is no JSON.
    """
    found = costs(settings, cells, benchmarks)
    sheet = _sheet(settings, found)
    printed = _printed_sheet(found)
    parts = [markdown(sheet), *([f"#{markdown(printed)}"] if len(printed.frame) else [])]
    formats = {".md": "\n".join(parts), ".csv": csv(sheet)}
    for output in outputs:
        with atomic_text(output) as stream:
            stream.write(formats[output.suffix])


def _sheet(settings: Settings, found: PaperCosts) -> Sheet:
    """Return the table of costs, with a row for each exhibit, for what they share, and for all."""
    stand_in = settings.scale.stand_in
    headings = [
        "Costs: what each table and figure takes",
        *([f"STAND-IN DATA: {stand_in}"] if stand_in else []),
        f"Scale: {settings.options.scale}. Hours of trainings are time times GPUs, or without one "
        "times threads; of other jobs processor time. Each column: docs/preflight.md.",
    ]
    scale = settings.options.scale + (" (STAND-IN DATA)" if stand_in else "")
    rows = [{**row, _SCALE: scale} for row in _rows(found)]
    return Sheet(headings, pd.DataFrame(rows, dtype=str), _NAME, {}, {}, (_SCALE,))


def _rows(found: PaperCosts) -> Iterator[dict[str, str]]:
    for name, cost in found.exhibits.items():
        yield _row(name, cost, found.printed[name])
    shared = dict.fromkeys(_row("", found.total, all_printed(found)), "")
    yield {**shared, _NAME: "shared by several", "Other jobs, core-hours": _hours(found.shared)}
    yield _row("all, each run once", found.total, all_printed(found))


def _row(name: str, cost: Cost, printed: PrintedCost) -> dict[str, str]:
    measured = _pair(cost.measured, "not measured" if cost.finished else "")
    to_come = _pair(cost.left if cost.trainings else None, "not measured" if cost.trainings else "")
    stated = _hours(printed.hours) if printed.stated else "not stated"
    return {
        _NAME: name,
        "Trainings": str(cost.trainings),
        "Finished": str(cost.finished),
        "Core-hours": measured[0],
        "GPU-hours": measured[1],
        "Other jobs, core-hours": _hours(cost.jobs),
        "To come, core-hours": to_come[0],
        "To come, GPU-hours": to_come[1],
        "To come, trainings not measured": str(cost.unknown),
        "The papers' GPU-hours": stated if printed.stated or printed.unstated else "",
        "Models whose hours they do not state": str(len(printed.unstated)),
    }


def _printed_sheet(found: PaperCosts) -> Sheet:
    """Return the table of what the papers state, with the exhibits that rest on it."""
    rows = [
        {
            "Model": one.model,
            "Text": one.text,
            "GPU-hours": _hours(one.hours),
            "Source": one.source,
            "Tables and figures": ", ".join(
                name for name, printed in found.printed.items() if one in printed.stated
            ),
        }
        for one in all_printed(found).stated
    ]
    names = ["Model", "Text", "GPU-hours", "Source", "Tables and figures"]
    headings = ["One training of each model of the papers, as far as they state it"]
    return Sheet(headings, pd.DataFrame(rows, columns=names, dtype=str), "Model", {}, {}, ())


def _pair(hours: Hours | None, absent: str) -> tuple[str, str]:
    """Write core-hours and GPU-hours, or why there are none."""
    return (absent, absent) if hours is None else (_hours(hours.cores), _hours(hours.gpus))


def _hours(hours: float) -> str:
    return f"{hours:.2f}" if hours >= 1 or not hours else f"{hours:.4f}"
