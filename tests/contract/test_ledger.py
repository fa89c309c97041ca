"""The ledger: a line for each run that is there, nothing typed in."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.files.checksums import sha256
from convs2s.paper.cells import Cell, CellAddress, cells
from convs2s.paper.ledger import LedgerEntry, RunScore, fingerprint_of, read_ledger
from convs2s.paper.results import entries_of, results, write_ledger
from tests.support.cells import write

DIGEST = "0a" * 32
PAIR = {
    "tokenized": {"score": 21.5, "signature": "nrefs:1"},
    "detokenized": {"score": 22.5, "signature": "nrefs:1"},
}
MANIFEST = {
    "sha256": {"model.safetensors": DIGEST},
    "weights": {"model.safetensors": "0b" * 32},
    "processor": "a processor",
}
NUMBERS = {
    "lines": 500,
    "before_replacement": {"bleu": PAIR},
    "further": {"WER": {"score": 33.3, "signature": None}},
    "manifest": MANIFEST,
}
BEFORE = "bleu_tokenized_before_replacement"

pytestmark = pytest.mark.usefixtures("in_folder")


def first_cell(settings: Settings, column: str) -> Cell:
    """The cell of table 4's first row in a column."""
    return next(
        one for one in cells(settings, "table4") if one.address.column == column
    )


@pytest.fixture
def cell(demo: Settings) -> Cell:
    return first_cell(demo, "bleu")


def save_model(folder: Path, says: str) -> str:
    """Write a file of one weight and of what else a model file says; return its name."""
    path = folder / "model.safetensors"
    save_file({"weight": np.arange(3, dtype=np.float32)}, path, {"convs2s": says})
    return str(path)


@pytest.fixture
def ledger(demo: Settings, cell: Cell) -> Path:
    """A ledger of a score and a training."""
    training = first_cell(demo, "ppl").paths[0]
    trained = {
        "identity": {"data": {"train.arrow": DIGEST}},
        "processor": "a processor",
    }
    write(cell.paths[0], NUMBERS | {"sentences": {"bleu_tokenized": "eJw="}})
    write(training, {"validation_perplexity": 6.5, "manifest": trained})
    save_model(Path(training).parent, "a model")
    measured = [
        cell for name in ("table1", "table4", "figure2") for cell in cells(demo, name)
    ]
    output = Path("ledger.jsonl")
    there = [cell.paths[0], training]
    write_ledger(demo, cells=measured, scores=there, published=None, output=output)
    return output


def copy_of(ledger: Path, score: float, **changed: object) -> Path:
    """A ledger of the same runs that scored otherwise."""
    lines = []
    for entry in read_ledger(ledger):
        scores = {name: RunScore(score, None) for name in entry.scores}
        line = json.loads(replace(entry, scores=scores).line())
        lines.append(json.dumps({**line, **changed}))
    others = Path("others.jsonl")
    others.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return others


def test_a_line_holds_what_a_run_scored_and_on_what_it_rests(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    score, training = sorted(read_ledger(ledger), key=lambda one: one.lines is None)
    assert (score.file, score.lines) == (cell.paths[0], 500)
    # Those that no column shows as well.
    assert score.scores == {
        BEFORE: RunScore(21.5, "nrefs:1"),
        "before_replacement.bleu.detokenized": RunScore(22.5, "nrefs:1"),
        "WER": RunScore(33.3, None),
    }
    # Not those of the length ratio, which this file lacks.
    rows = ("table4, row 1", "figure2, row 13", "figure2, row 30")
    assert set(score.table_cells) == {f"{row}, bleu" for row in rows}
    assert score.fingerprint == fingerprint_of(score.inputs) != training.fingerprint
    assert score.processor == "a processor"
    assert (score.sha256, score.weights) == (MANIFEST["sha256"], MANIFEST["weights"])
    assert (score.run.run, score.run.decoding) == ("seed1", "beam5")
    assert score.sentences == {"bleu_tokenized": "eJw="}
    assert training.scores == {"perplexity": RunScore(6.5, None)}
    assert (training.run.testset, training.run.decoding) == (None, None)
    # A training names its data and its model; of the same weights with another dictionary, those.
    (model,) = training.weights
    assert training.sha256 == {"train.arrow": DIGEST, model: sha256(model)}
    save_model(Path(model).parent, "the same model, with another dictionary")
    perplexity = first_cell(demo, "ppl")
    (again,) = entries_of(demo, [perplexity], perplexity.paths)
    assert again.weights == training.weights
    assert again.sha256[model] != training.sha256[model]


def test_an_entry_is_written_as_it_is_read(ledger: Path) -> None:
    entries = read_ledger(ledger)
    assert [one.line() for one in entries] == ledger.read_text("utf-8").splitlines()
    assert '"processor": "à part"' in replace(entries[0], processor="à part").line()


@pytest.mark.parametrize(
    ("trained", "scored", "expected"),
    [
        (
            {"processor": "an EPYC, AVX2, torch 2.13.0"},
            "an EPYC, AVX2",
            "an EPYC, AVX2, torch 2.13.0",
        ),
        ({"processor": "an EPYC"}, "a Xeon", "an EPYC; a Xeon"),
        ({"processor": "an EPYC", "gpu": "an H100"}, "an EPYC", "an H100, an EPYC"),
        ({"processor": None}, None, None),
    ],
)
def test_a_score_names_the_processors_of_its_model_and_its_own(
    demo: Settings,
    cell: Cell,
    trained: Mapping[str, object],
    scored: str | None,
    expected: str | None,
) -> None:
    write(first_cell(demo, "ppl").paths[0], {"manifest": trained})
    write(cell.paths[0], NUMBERS | {"manifest": MANIFEST | {"processor": scored}})
    (entry,) = entries_of(demo, [cell], cell.paths[:1])
    assert entry.processor == expected


def test_cells_show_what_the_ledger_holds_with_no_results_folder(
    root: Path, demo: Settings, ledger: Path
) -> None:
    """But no run of other inputs."""
    entries = read_ledger(ledger)
    for entry in entries:
        Path(entry.file).unlink()
    beam = {"decodings": {"beam5": {"beam": 4}}}
    changed = load(root, {"scale": "demo", "overrides": beam})
    for settings, score in ((demo, 21.5), (changed, None)):
        found = {
            (one.address.row, one.address.column): one.mean
            for one in results(cells(settings, "table4"), entries)
        }
        assert (found[0, "bleu"], found[0, "ppl"], found[1, "bleu"]) == (
            score,
            6.5,
            None,
        )


def test_of_two_lines_of_a_run_the_later_counts(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    later = copy_of(ledger, 22.5)
    ledger.write_text(ledger.read_text("utf-8") + later.read_text("utf-8"), "utf-8")
    for entries in (read_ledger(ledger), entries_of(demo, [cell], [], str(ledger))):
        (found,) = results([cell], entries)
        assert found.scores == {"seed1": 22.5}


def test_of_a_run_on_two_processors_that_of_the_most_runs_is_shown(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    entries = read_ledger(ledger)
    score, training = sorted(entries, key=lambda one: one.lines is None)
    elsewhere = replace(score, processor="another", scores={BEFORE: RunScore(30, None)})
    # A run of the cell weighs more than those of another cell.
    beside = replace(elsewhere, fingerprint=cell.records[-1].fingerprint)
    for found, shown in (
        ([elsewhere, *entries], 21.5),
        ([*entries, elsewhere], 21.5),
        ([*entries, training, elsewhere, beside], 30),
    ):
        best = results(cells(demo, "table4"), found)
        (of_cell,) = (one for one in best if one.address == cell.address)
        assert of_cell.scores["seed1"] == shown
    # The processor of most runs made this run without that number.
    ratio = replace(elsewhere, scores={"length_ratio": RunScore(0.9, None)})
    best = results(cells(demo, "table4"), [ratio, *entries])
    assert {one.measure: one.mean for one in best if one.entries} == {
        "perplexity": 6.5,
        BEFORE: 21.5,
        "length_ratio": 0.9,
    }


def test_a_recipe_under_two_names_is_one_run_in_the_cells_of_both(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    moved = tuple(replace(one, file=f"other/{one.file}") for one in cell.records)
    other = replace(cell, address=CellAddress("table5", 0, "bleu"), records=moved)
    write(other.paths[0], NUMBERS)
    there = [cell.paths[0], other.paths[0]]
    write_ledger(demo, cells=[cell, other], scores=there, published=None, output=ledger)
    (entry,) = read_ledger(ledger)
    assert set(entry.table_cells) == {str(cell.address), str(other.address)}


def test_a_run_of_ones_own_comes_before_the_published_one(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    """The published run scored otherwise: rounding differs from machine to machine."""

    def shown(scores: list[str]) -> LedgerEntry:
        entries = entries_of(demo, [cell], scores, str(others))
        return results([cell], entries)[0].entries["seed1"]

    for processor in ("a processor", "another"):
        others = copy_of(ledger, 30.0, processor=processor)
        own = shown([cell.paths[0]])
        theirs = shown([])
        assert (own.scores[BEFORE].score, own.origin) == (21.5, None)
        assert (theirs.scores[BEFORE].score, theirs.origin) == (30.0, "others.jsonl")


def test_published_runs_are_in_the_ledger_under_our_names(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    """Names are no part of a fingerprint: another configuration may have others."""
    names = {"task": "captions", "model": "m", "run": "seed1"}
    theirs = copy_of(ledger, 30.0, run=names | {"testset": None, "decoding": None})
    measured = [*cells(demo, "table2"), *cells(demo, "table4")]
    output = Path("ours.jsonl")
    for scores, origins in (
        ([cell.paths[0]], [None, "others.jsonl"]),
        ([], ["others.jsonl"] * 2),
    ):
        write_ledger(
            demo, cells=measured, scores=scores, published=str(theirs), output=output
        )
        entries = read_ledger(output)
        assert [one.origin for one in entries] == origins
        assert {one.run.task for one in entries} == {cell.task}
        assert {one.table_cells for one in entries} == {
            ("table4, row 1, bleu",),
            ("table4, row 1, ppl",),
        }
