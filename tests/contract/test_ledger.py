"""The ledger: a line for each run that is there, nothing typed in."""

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
from convs2s.paper.ledger import RunScore, fingerprint_of, read_ledger
from convs2s.paper.results import entries_of, results, write_ledger
from tests.support.cells import write

DIGEST = "0a" * 32
MANIFEST = {
    "sha256": {"model.safetensors": DIGEST},
    "weights": {"model.safetensors": "0b" * 32},
    "processor": "a processor",
}
NUMBERS = {
    "lines": 500,
    "before_replacement": {
        "bleu": {
            "tokenized": {"score": 21.5, "signature": "nrefs:1"},
            "detokenized": {"score": 22.5, "signature": "nrefs:1"},
        }
    },
    "further": {"WER": {"score": 33.3, "signature": None}},
    "sentences": {"bleu_tokenized": "eJw="},
    "manifest": MANIFEST,
}
BEFORE = "bleu_tokenized_before_replacement"

pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture
def cell(demo: Settings) -> Cell:
    """BLEU of table 4's first row."""
    return cells(demo, "table4")[1]


@pytest.fixture
def training(demo: Settings) -> str:
    """The record of that row's training, of which the row has the perplexity."""
    return cells(demo, "table4")[0].paths[0]


@pytest.fixture
def ledger(demo: Settings, cell: Cell, training: str) -> Path:
    """A ledger of a score and a training."""
    data = {"train.arrow": DIGEST}
    trained = {"identity": {"data": data}, "processor": "a processor"}
    write(training, {"validation_perplexity": 6.5, "manifest": trained})
    model = Path(training).with_name("model.safetensors")
    save_file({"weight": np.arange(3, dtype=np.float32)}, model, {"convs2s": "a"})
    names = ("table1", "table4", "figure2")
    write_ledger(
        demo,
        cells=[cell for name in names for cell in cells(demo, name)],
        scores=[write(cell.paths[0], NUMBERS), training],
        published=None,
        output=Path("ledger.jsonl"),
    )
    return Path("ledger.jsonl")


def others_of(ledger: Path, words: str, others: str) -> str:
    """Write a ledger that has other words in the place of some; return the file."""
    text = ledger.read_text("utf-8")
    assert words in text
    Path("others.jsonl").write_text(text.replace(words, others), "utf-8")
    return "others.jsonl"


def test_a_line_holds_what_a_run_scored_and_on_what_it_rests(
    cell: Cell, training: str, ledger: Path
) -> None:
    score, trained = sorted(read_ledger(ledger), key=lambda one: one.lines is None)
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
    assert score.fingerprint == fingerprint_of(score.inputs) != trained.fingerprint
    assert (score.sha256, score.weights) == (MANIFEST["sha256"], MANIFEST["weights"])
    assert (score.run.run, score.run.decoding) == ("seed1", "beam5")
    assert score.sentences == NUMBERS["sentences"]
    assert trained.scores == {"perplexity": RunScore(6.5, None)}
    assert (trained.run.testset, trained.run.decoding) == (None, None)
    # A training names its data and its model.
    (model,) = trained.weights
    assert trained.sha256 == {"train.arrow": DIGEST, model: sha256(Path(model))}


def test_an_entry_is_written_as_it_is_read(ledger: Path) -> None:
    entries = read_ledger(ledger)
    assert [one.line() for one in entries] == ledger.read_text("utf-8").splitlines()
    assert '"processor": "à part"' in replace(entries[0], processor="à part").line()


@pytest.mark.parametrize(
    ("trained", "scored", "expected"),
    [
        ({"processor": "an EPYC, AVX2"}, "an EPYC", "an EPYC, AVX2"),
        ({"processor": "an EPYC"}, "a Xeon", "an EPYC; a Xeon"),
        ({"processor": "an EPYC", "gpu": "an H100"}, "an EPYC", "an H100, an EPYC"),
        ({"processor": None}, None, None),
    ],
)
def test_a_score_names_the_processors_of_its_model_and_its_own(
    demo: Settings,
    cell: Cell,
    training: str,
    trained: Mapping[str, object],
    scored: str | None,
    expected: str | None,
) -> None:
    write(training, {"manifest": trained})
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
    other = load(root, {"scale": "demo", "overrides": beam})
    for settings, score in ((demo, 21.5), (other, None)):
        found = [one.mean for one in results(cells(settings, "table4"), entries)]
        assert found[:4] == [6.5, score, None, None]


def test_of_two_lines_of_a_run_the_later_counts(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    text = ledger.read_text("utf-8")
    ledger.write_text(text + text.replace("21.5", "9.5"), "utf-8")
    for entries in (read_ledger(ledger), entries_of(demo, [cell], [], str(ledger))):
        (found,) = results([cell], entries)
        assert found.scores == {"seed1": 9.5}


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
        _, best, *_ = results(cells(demo, "table4"), found)
        assert best.scores["seed1"] == shown
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
    there = [cell.paths[0], write(other.paths[0], NUMBERS)]
    write_ledger(demo, cells=[cell, other], scores=there, published=None, output=ledger)
    (entry,) = read_ledger(ledger)
    assert set(entry.table_cells) == {str(cell.address), str(other.address)}


@pytest.mark.parametrize(
    ("words", "others", "score"),
    [('"score": 21.5', '"score": 30.0', 30.0), ("a processor", "another", 21.5)],
)
def test_a_run_of_ones_own_comes_before_the_published_one(
    demo: Settings, cell: Cell, ledger: Path, words: str, others: str, score: float
) -> None:
    """The published run scored otherwise: rounding differs from machine to machine."""
    others = others_of(ledger, words, others)
    for scores, shown, origin in (
        (cell.paths[:1], 21.5, None),
        ([], score, "others.jsonl"),
    ):
        (found,) = results([cell], entries_of(demo, [cell], scores, others))
        entry = found.entries["seed1"]
        assert (entry.scores[BEFORE].score, entry.origin) == (shown, origin)


def test_published_runs_are_in_the_ledger_under_our_names(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    """Names are no part of a fingerprint: another configuration may have others."""
    run = '"run": {"task": "%s"'
    others = others_of(ledger, run % cell.task, run % "captions")
    measured = [*cells(demo, "table2"), *cells(demo, "table4")]
    output = Path("ours.jsonl")
    for scores, origins in (
        (cell.paths[:1], [None, "others.jsonl"]),
        ([], ["others.jsonl"] * 2),
    ):
        write_ledger(
            demo, cells=measured, scores=scores, published=others, output=output
        )
        entries = read_ledger(output)
        assert [one.origin for one in entries] == origins
        assert {one.run.task for one in entries} == {cell.task}
        assert {one.table_cells for one in entries} == {
            ("table4, row 1, bleu",),
            ("table4, row 1, ppl",),
        }
