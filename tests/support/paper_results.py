"""A results folder as a run of the paper leaves it, small and made up."""

import csv
import json
import math
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np

from convs2s.config.paper import Row, Table
from convs2s.paper.attention_maps import ExampleAttention, LayerCount
from convs2s.paper.report.write import write_report
from convs2s.paper.run_inputs import fingerprint_of

HOSTILE = "<script>alert('text')</script><img src=https://example.org/x onerror=alert(1)> & </td>"
"""Text of a corpus that would do harm if it were taken for HTML."""

STAND_IN = "made up & <b>small</b>"
DICTIONARY, COPIED = ("Hund", "dog", "dictionary"), ("Zürich", "Zürich", "copied")


@dataclass(frozen=True)
class PaperResults:
    """The folder.

    Attributes:
        folder: of the results, ``paper``, ``logs`` and the tasks below it.
        tables: the exhibits, by name.
        inputs: the files that the rule hands to the report.
    """

    folder: Path
    tables: dict[str, Table]
    inputs: list[str]

    @property
    def output(self) -> Path:
        """Where the report goes."""
        return self.folder / "paper/report.html"

    def report(self, *, stand_in: str | None = STAND_IN, without: str = "nothing") -> str:
        """Write the report without those inputs whose path holds some words; return its text."""
        write_report(
            tables=self.tables,
            shown={name: range(len(table.rows)) for name, table in self.tables.items()},
            scale="tiny",
            stand_in=stand_in,
            attention_of="figure3",
            inputs=[path for path in self.inputs if without not in path],
            output=self.output,
        )
        return self.output.read_text("utf-8")


def write_paper_results(folder: Path, tables: dict[str, Table]) -> PaperResults:
    """Write the files of runs of two of every three rows of every table, two seeds each."""
    inputs, ledger = [], []
    for name, table in tables.items():
        lines = [_header(table)]
        for number, row in enumerate(table.rows, start=1):
            is_run = row.kind == "ours" and number % 3 != 0
            value = f"{20 + number % 7}.50 ± 0.20" if is_run else "not run"
            lines.append(_line(table, row, "" if row.kind == "cited" else value))
            run = folder / f"task/models/model{number % 3}"
            ledger += [_entry(name, number, table, run, seed) for seed in (1, 2) if is_run]
        inputs.append(str(_csv(folder / f"paper/{name}.csv", lines)))
    for model, seed in product(("model1", "model2"), (1, 2)):
        inputs += _training(folder / f"task/models/{model}/seed{seed}", seed)
        _write(folder / f"logs/task/{model}/seed{seed}/train.log", "trained\n")
    first = folder / "task/models/model1"
    ledger.append(_speed(ledger[0]))
    lines_of_ledger = "".join(f"{json.dumps(one)}\n" for one in ledger)
    inputs += [
        *_translations(first / "seed1", folder),
        *_figures(folder, first),
        _write(folder / "paper/ledger.jsonl", lines_of_ledger),
        _write(folder / "paper/claims.json", json.dumps(_claims())),
    ]
    return PaperResults(folder, tables, inputs)


def _claims() -> dict[str, object]:
    """One claim with a comparison, one without."""
    compared = {"comparison": "A better than B", "verdict": "held", "value": 0.71, "note": None}
    finding = {**compared, "interval": [0.31, 1.2], "p_positive": 0.004, "runs": "2 against 2"}
    stated = {"name": "positions", "says": "Positions help", "source": "section 5.4"}
    open_one = {"name": "beam", "says": HOSTILE, "source": "table 3", "verdict": "not run"}
    claims = [{**stated, "verdict": "held", "findings": [finding]}, {**open_one, "findings": []}]
    return {"scale": "tiny", "claims": claims}


def _header(table: Table) -> list[str]:
    values = [f"{column.name} ({whose})" for column in table.columns for whose in ("paper", "ours")]
    group = [table.group_label] if table.group_label else []
    return [
        *group,
        table.system_label,
        *values,
        "Runs",
        "Test set",
        "Scale",
        "Metric",
        "Date",
        "Notes",
    ]


def _line(table: Table, row: Row, ours: str) -> list[str]:
    first = [row.group or "", row.system] if table.group_label else [row.system]
    values = ["21.00", ours] * len(table.columns)
    beside = ["2 of 2", "task test (500 lines)", "tiny", "BLEU", "2026-01-01", HOSTILE]
    return [*first, *values, *beside]


def _csv(path: Path, lines: list[list[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(lines)
    return path


def _entry(table: str, row: int, printed: Table, model: Path, seed: int) -> dict[str, object]:
    run = model / f"seed{seed}"
    named = {"task": "task", "model": model.name, "run": f"seed{seed}"}
    return {
        "fingerprint": fingerprint_of({}),
        "file": str(run / "test.beam5.bleu.json"),
        "table_cells": [f"{table}, row {row}, {column.key}" for column in printed.columns],
        "run": {**named, "testset": "test", "decoding": "beam5"},
        "scale": "tiny",
        "scores": {"bleu_tokenized": {"score": 21.5, "signature": "nrefs:1"}},
        "lines": 500,
        "sha256": {
            str(run / "test.beam5.jsonl"): "0a" * 32,
            str(_reference(model.parents[2])): "0b" * 32,
        },
        "processor": "a processor",
        "revision": "0123456789abcdef+",
        "date": f"2026-01-0{seed}",
    }


def _speed(entry: dict[str, object]) -> dict[str, object]:
    """The line of the same run's speed, which is of no test set and rests on its history."""
    run = Path(str(entry["file"])).parent
    named = {"task": "task", "model": run.parent.name, "run": run.name}
    return {
        **entry,
        "file": str(run / "training.speed.json"),
        "table_cells": [],
        "run": {**named, "testset": None, "decoding": None},
        "lines": None,
        "sha256": {str(run / "history.jsonl"): "0c" * 32},
    }


def _training(run: Path, seed: int) -> list[str]:
    rows = [
        {"epoch": epoch, "learning_rate": 0.25, "tokens": 36_000, "tokens_per_second": 100}
        | {"train_loss": 4 / epoch, "updates": 10 * epoch, "valid_loss": 5 / epoch}
        | {"valid_perplexity": math.exp(5 / epoch) + seed}
        for epoch in range(1, 11)
    ]
    history = "".join(f"{json.dumps(row)}\n" for row in [*rows, {"stop": HOSTILE}])
    machine = {"threads": 2, "workers": 1, **({} if seed == 1 else {"gpu": "A GPU"})}
    packages = {"torch": "2.13.0", "eflomal": None}
    summary = {"best_epoch": 10, "epochs": 10, "updates": 100, "parameters": 2_943_170}
    made = {**machine, "processor": HOSTILE, "python": "3.11.7", "packages": packages}
    record = {**summary, "validation_perplexity": 1.65, "stop_reason": HOSTILE, "manifest": made}
    return [
        _write(run / "history.jsonl", history),
        _write(run / "training.json", json.dumps(record)),
    ]


def _translations(run: Path, folder: Path) -> list[str]:
    lines = []
    for number in range(1, 13):
        words = ["Der", "<unk>", "in", "<unk>", "."] if number % 5 == 0 else ["Ja", "."]
        items = [DICTIONARY, COPIED] if number % 5 == 0 else []
        lines.append(
            {
                "line": number,
                "source": f"{HOSTILE} {number}",
                "text": f"Satz {number}",
                "words": words,
            }
            | {"text_before": "", "words_before": words}
            | {
                "replacements": [
                    dict(zip(("word", "source_word", "by"), i, strict=True)) for i in items
                ]
            }
        )
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    reference = "".join(f"Bezug {number}\n" for number in range(1, 13))
    return [_write(run / "test.beam5.jsonl", text), _write(_reference(folder), reference)]


def _reference(folder: Path) -> Path:
    return folder / "task/corpus/raw/test.de"


def _figures(folder: Path, model: Path) -> list[str]:
    source = ["We", "built", "this", "festival", "as", "way", "of", "continuing", "<b>", "</s>"]
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
        layers=LayerCount(8, "a sentence"),
        weights=weights.tolist(),
    )
    path = model / "seed1/test.beam5.example.json"
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><circle r="80"/></svg>'
    )
    return [
        _write(path, json.dumps(asdict(example))),
        _write(folder / "paper/lstm_figure2.svg", picture),
    ]


def _write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)
