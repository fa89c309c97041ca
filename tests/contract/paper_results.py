"""A results folder as a run of the paper leaves it, small and made up."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from convs2s.config.load import load
from convs2s.config.paper import Column, Table
from convs2s.config.settings import Settings
from convs2s.paper.attention_maps import ExampleAttention
from convs2s.paper.cells import Cell, CellAddress
from convs2s.paper.ledger import RunNames, RunScore, fingerprint_of, planned_entry
from convs2s.paper.report.write import write_report

HOSTILE = "<script>alert('text')</script><img src=https://example.org/x onerror=alert(1)> & </td>"
"""Text of a corpus that would do harm if it were taken for HTML."""

STAND_IN = "made up & <b>small</b>"
REPLACEMENTS = [
    {"word": "Hund", "source_word": "dog", "by": "dictionary"},
    {"word": "Zürich", "source_word": "Zürich", "by": "copied"},
]


@dataclass(frozen=True)
class PaperResults:
    """The folder.

    Attributes:
        folder: of the results, ``paper``, ``logs`` and the tasks below it.
        settings: the configuration, of two models of one task.
        cells: of each table.
        inputs: the files that the rule hands to the report.
    """

    folder: Path
    settings: Settings
    cells: dict[str, list[Cell]]
    inputs: list[str]

    @property
    def tables(self) -> Mapping[str, Table]:
        """The exhibits, by name."""
        return self.settings.paper

    @property
    def output(self) -> Path:
        """Where the report goes."""
        return self.folder / "paper/report.html"

    def report(
        self, *, stand_in: str | None = STAND_IN, without: str = "nothing"
    ) -> str:
        """Write the report without those inputs whose path holds some words; return its text."""
        scale = self.settings.scale.model_copy(update={"stand_in": stand_in})
        write_report(
            replace(self.settings, scale=scale),
            cells=self.cells,
            failures={},
            inputs=[path for path in self.inputs if without not in path],
            output=self.output,
        )
        return self.output.read_text("utf-8")


def write_paper_results(folder: Path, root: Path) -> PaperResults:
    """Write the files of runs of two of every three rows of every table, two seeds each."""
    loaded = load(root, {"scale": "demo"})
    settings = replace(
        loaded,
        tasks={**loaded.tasks, "task": loaded.tasks["demo_en_fr"]},
        paper={
            name: _with_hostile_notes(table) for name, table in loaded.paper.items()
        },
        options=loaded.options.model_copy(update={"scale": "tiny"}),
    )
    inputs: list[str] = []
    ledger: list[dict[str, object]] = []
    cells: dict[str, list[Cell]] = {name: [] for name in settings.paper}
    for name, table in settings.paper.items():
        for number in settings.scale.shown_rows(table):
            if table.rows[number].kind == "ours":
                place = folder / f"task/models/model{(number + 1) % 3}"
                of_row = [
                    _cell(name, number, table, column, place)
                    for column in table.columns
                ]
                cells[name] += of_row
                if (number + 1) % 3:
                    ledger += [_entry(of_row, place, seed) for seed in (1, 2)]
    for model, seed in product(("model1", "model2"), (1, 2)):
        inputs += write_training(folder / f"task/models/{model}/seed{seed}", seed)
        _write(folder / f"logs/task/{model}/seed{seed}/train.log", "trained\n")
    first = folder / "task/models/model1"
    ledger.append(_speed(ledger[0]))
    lines_of_ledger = "".join(f"{json.dumps(line)}\n" for line in ledger)
    inputs += [
        *_translations(first / "seed1", folder),
        *write_figures(folder, first),
        _write(folder / "paper/ledger.jsonl", lines_of_ledger),
        _write(folder / "paper/claims.json", json.dumps(_claims())),
    ]
    return PaperResults(folder, settings, cells, inputs)


def _with_hostile_notes(table: Table) -> Table:
    rows = [row.model_copy(update={"note": HOSTILE}) for row in table.rows]
    return table.model_copy(update={"rows": rows})


def _cell(name: str, row: int, table: Table, column: Column, model: Path) -> Cell:
    """The cell of a row in a column, of two seeds."""
    address = CellAddress(name, row, column.key)
    records = [
        planned_entry(
            _inputs(name, row, seed),
            file=str(model / f"seed{seed}/test.beam5.bleu.json"),
            run=RunNames("task", model.name, f"seed{seed}", "test", "beam5"),
            scale="tiny",
        )
        for seed in (1, 2)
    ]
    return Cell(
        address,
        measure="bleu_tokenized",
        task="task",
        model=model.name,
        testset="test",
        decoding="beam5",
        phrases=None,
        records=tuple(records),
    )


def _inputs(table: str, row: int, seed: int) -> dict[str, object]:
    return {"row": f"{table} {row}", "seed": seed}


def _claims() -> dict[str, object]:
    """One claim with a comparison, one of a trend that a pair of rows refutes, one without."""
    compared = {
        "comparison": "A better than B",
        "verdict": "held",
        "value": 0.71,
        "note": None,
    }
    finding = {**compared, "interval": [0.31, 1.2], "p": 0.004, "runs": "2 against 2"}
    stated = {"name": "positions", "says": "Positions help", "source": "section 5.4"}
    reversed_one = {
        **compared,
        "verdict": "not held",
        "p_reversal": 0.001,
        "note": "3 beats 5",
    }
    trend = {"name": "depth", "says": "Depth helps", "source": "section 5.4"}
    open_one = {
        "name": "beam",
        "says": HOSTILE,
        "source": "table 3",
        "verdict": "not run",
    }
    claims = [
        {**stated, "verdict": "held", "findings": [finding], "untested": None},
        {**trend, "verdict": "not held", "findings": [reversed_one], "untested": None},
        {**open_one, "findings": [], "untested": HOSTILE},
    ]
    return {"scale": "tiny", "claims": claims}


def _entry(cells: list[Cell], model: Path, seed: int) -> dict[str, object]:
    """The line of a seed's BLEU, which all columns of a row show."""
    run, address = model / f"seed{seed}", cells[0].address
    named = {"task": "task", "model": model.name, "run": f"seed{seed}"}
    inputs = _inputs(address.table, address.row, seed)
    return {
        "fingerprint": fingerprint_of(inputs),
        "file": str(run / "test.beam5.bleu.json"),
        "table_cells": [str(cell.address) for cell in cells],
        "run": {**named, "testset": "test", "decoding": "beam5"},
        "scale": "tiny",
        "scores": {
            "bleu_tokenized": {
                "score": 20 + address.row % 7 + 0.2 * seed,
                "signature": "nrefs:1",
            }
        },
        "lines": 500,
        "sha256": {
            str(run / "test.beam5.jsonl"): "0a" * 32,
            str(_reference(model.parents[2])): "0b" * 32,
        },
        "processor": "a processor",
        "revision": "0123456789abcdef+",
        "date": f"2026-01-0{seed}",
        "inputs": inputs,
    }


def _speed(entry: dict[str, object]) -> dict[str, object]:
    """The line of the same run's speed, which is of no test set and rests on its history."""
    run = Path(str(entry["file"])).parent
    named = {"task": "task", "model": run.parent.name, "run": run.name}
    return {
        **entry,
        "file": str(run / "training.speed.json"),
        "fingerprint": fingerprint_of({}),
        "inputs": {},
        "table_cells": [],
        "run": {**named, "testset": None, "decoding": None},
        "lines": None,
        "sha256": {str(run / "history.jsonl"): "0c" * 32},
    }


def write_training(run: Path, seed: int) -> list[str]:
    """Write a history of ten epochs and a record; return their paths."""
    rows = [
        {
            "epoch": epoch,
            "learning_rate": 0.25,
            "tokens": 36_000,
            "tokens_per_second": 100,
        }
        | {"train_loss": 4 / epoch, "updates": 10 * epoch, "valid_loss": 5 / epoch}
        | {"valid_perplexity": math.exp(5 / epoch) + seed}
        | ({"valid_bleu": float(epoch)} if run.parent.name == "model2" else {})
        for epoch in range(1, 11)
    ]
    history = "".join(f"{json.dumps(row)}\n" for row in [*rows, {"stop": HOSTILE}])
    machine = {"threads": 2, "workers": 1, **({} if seed == 1 else {"gpu": "A GPU"})}
    packages = {"torch": "2.13.0", "eflomal": None}
    summary = {"best_epoch": 10, "epochs": 10, "updates": 100, "parameters": 2_943_170}
    made = {**machine, "processor": HOSTILE, "python": "3.11.7", "packages": packages}
    record = {
        **summary,
        "validation_perplexity": 1.65,
        "stop_reason": HOSTILE,
        "manifest": made,
    }
    return [
        _write(run / "history.jsonl", history),
        _write(run / "training.json", json.dumps(record)),
    ]


def _translations(run: Path, folder: Path) -> list[str]:
    """Write twelve translations, of which every fifth had unknown words; return the paths."""
    lines = []
    for number in range(1, 13):
        has_unknown = number % 5 == 0
        words = ["Der", "<unk>", "in", "<unk>", "."] if has_unknown else ["Ja", "."]
        line = {
            "line": number,
            "source": f"{HOSTILE} {number}",
            "text": f"Satz {number}",
            "words": words,
            "text_before": "",
            "words_before": words,
            "replacements": REPLACEMENTS if has_unknown else [],
        }
        lines.append(line)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    reference = "".join(f"Bezug {number}\n" for number in range(1, 13))
    return [
        _write(run / "test.beam5.jsonl", text),
        _write(_reference(folder), reference),
    ]


def _reference(folder: Path) -> Path:
    return folder / "task/corpus/raw/test.de"


def write_figures(folder: Path, model: Path) -> list[str]:
    """Write the attention of an example and a picture of phrases; return their paths."""
    source = [
        "We",
        "built",
        "this",
        "festival",
        "as",
        "way",
        "of",
        "continuing",
        "<b>",
        "</s>",
    ]
    target = ["Wir", "haben", "dieses", "Festival", "als", "Weg", "</s>"]
    weights = np.random.default_rng(1).dirichlet([0.3] * len(source), (8, len(target)))
    example = ExampleAttention(
        task="task",
        model=model.name,
        run="seed1",
        scale="tiny",
        stand_in=STAND_IN,
        source=" ".join(source[:-1]),
        source_tokens=source,
        translation=" ".join(target[:-1]),
        target_tokens=target,
        layers=RunScore(8, "a sentence"),
        weights=weights.tolist(),
    )
    path = model / "seed1/test.beam5.example.json"
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="90"><circle r="80"/></svg>'
    )
    return [
        _write(path, json.dumps(asdict(example))),
        _write(folder / "paper/lstm_figure2.svg", picture),
    ]


def _write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)
