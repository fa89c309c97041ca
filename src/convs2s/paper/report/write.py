"""The report: what a run of the paper made, in one HTML file that needs nothing else."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from convs2s.config.paper import Table
from convs2s.files.text import atomic_text
from convs2s.paper.attention_maps import ExampleAttention, attention_maps, read_example
from convs2s.paper.bleu_by_layers import layer_panels
from convs2s.paper.charts import ChartSpec, as_spec
from convs2s.paper.curves import learning_curves
from convs2s.paper.report.claims import read_claims
from convs2s.paper.report.costs import TableCost, cost, environment, table_cost
from convs2s.paper.report.examples import examples
from convs2s.paper.report.exhibits import ShownTable, networks, read_table
from convs2s.paper.report.page import embedded, render
from convs2s.paper.report.recorded import read_ledger, trainings
from convs2s.paper.trained import Training

_EXAMPLE = ".example.json"


@dataclass(frozen=True)
class ShownAttention:
    """A sentence's attention maps.

    Attributes:
        example: the sentence, its translation and the numbers of all layers.
        charts: one for each.
    """

    example: ExampleAttention
    charts: Sequence[ChartSpec]


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper.

    Attributes:
        name: of its files.
        printed: as the configuration has it.
        table: its values beside ours.
        charts: panels that answer to the pointer.
        picture: the address of a plot drawn before; None where it has none.
        attention: maps, where it shows some.
        cost: what its trainings took.
    """

    name: str
    printed: Table
    table: ShownTable
    charts: Sequence[ChartSpec]
    picture: str | None
    attention: Sequence[ShownAttention]
    cost: TableCost


@dataclass(frozen=True)
class ModelRuns:
    """The trainings of one model on one task.

    Attributes:
        task: its name.
        model: its name.
        runs: those trainings.
        charts: their learning curves; none where no history is there.
    """

    task: str
    model: str
    runs: Sequence[Training]
    charts: Sequence[ChartSpec]


def write_report(
    *,
    tables: Mapping[str, Table],
    shown: Mapping[str, Sequence[int]],
    scale: str,
    stand_in: str | None,
    attention_of: str | None,
    inputs: Collection[str],
    output: Path,
) -> None:
    """Write the report.

    Args:
        tables: the papers' tables and figures, by name, in their order.
        shown: which of their rows the scale has, from 0.
        scale: name of the scale.
        stand_in: what the data is, where it is not the paper's.
        attention_of: the figure that shows attention maps; None where none does.
        inputs: the files that are there: beside the output the ledger, the claims, each table's
            CSV file, and figures as far as they go; elsewhere histories, training.json,
            attention maps, translations and references.
        output: the HTML file; links to logs are relative to it.

    Raises:
        UserError: an input is malformed.
    """
    paths = [Path(path) for path in inputs]
    content = _content(tables, shown, paths, attention_of, output, stand_in)
    with atomic_text(output) as stream:
        stream.write(render({**content, "scale": scale, "stand_in": stand_in}))


def _content(
    tables: Mapping[str, Table],
    shown: Mapping[str, Sequence[int]],
    paths: Sequence[Path],
    attention_of: str | None,
    output: Path,
    stand_in: str | None,
) -> dict[str, object]:
    """Return what the page shows, by the names that its template has for it."""
    named = {path.name: path for path in paths if path.parent == output.parent}
    scores = read_ledger(named["ledger.jsonl"])
    trained = trainings(scores, paths)
    maps = [_attention(path) for path in paths if path.name.endswith(_EXAMPLE)]
    exhibits = []
    for name, printed in tables.items():
        table = read_table(name, printed, shown[name], named[f"{name}.csv"], scores, trained)
        attention = maps if name == attention_of else ()
        exhibits.append(_exhibit(name, printed, shown[name], table, named, attention, stand_in))
    return {
        "exhibits": exhibits,
        "claims": read_claims(named["claims.json"]),
        "models": _models(trained),
        "logs": {run.anchor: log for run in trained if (log := _log(run, output))},
        "examples": examples(scores, paths),
        "total": cost(trained),
        "environment": environment(trained),
        "dates": sorted({one.date for one in scores}),
        "revisions": sorted({one.revision for one in scores if one.revision}),
    }


def _attention(path: Path) -> ShownAttention:
    example = read_example(path)
    weights = np.array(example.weights)  # (layers, target, source)
    maps = attention_maps(weights, example.source_tokens, example.target_tokens, has_legend=False)
    described = "attention: source on the y-axis, target on the x-axis"
    return ShownAttention(example, [as_spec(panel, described) for panel in maps])


def _exhibit(
    name: str,
    printed: Table,
    shown: Sequence[int],
    table: ShownTable,
    named: Mapping[str, Path],
    maps: Sequence[ShownAttention],
    stand_in: str | None,
) -> Exhibit:
    charts = []
    if printed.is_by_layers:
        panels = layer_panels(networks(printed, shown, table), on_stand_in=stand_in is not None)
        charts = [as_spec(panel, printed.title) for panel in panels]
    drawn = named.get(f"{name}.svg")
    picture = embedded(drawn.read_bytes()) if drawn and not charts and not maps else None
    return Exhibit(name, printed, table, charts, picture, maps, table_cost(table))


def _models(trained: Sequence[Training]) -> list[ModelRuns]:
    """Return the trainings by task and model, which they are sorted by."""
    found = []
    for (task, model), group in groupby(trained, key=lambda run: (run.task, run.model)):
        runs = list(group)
        known = {run.run: run.epochs for run in runs if run.epochs}
        panels = learning_curves(known) if known else []
        charts = [as_spec(panel, "perplexity and learning rate by epoch") for panel in panels]
        found.append(ModelRuns(task, model, runs, charts))
    return found


def _log(run: Training, output: Path) -> str | None:
    """Return the address of a training's log from the report; None where there is no such file."""
    path = output.parent.parent / "logs" / run.task / run.model / run.run / "train.log"
    return Path(os.path.relpath(path, output.parent)).as_posix() if path.is_file() else None
