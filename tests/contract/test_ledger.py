"""The ledger: a line for each run that is there, nothing typed in."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from convs2s.config.settings import Settings
from convs2s.files.checksums import sha256
from convs2s.paper.cells import Cell, CellAddress, cells
from convs2s.paper.ledger import RunScore, fingerprint_of, read_ledger
from convs2s.paper.results import entries_of, results, write_ledger
from tests.support.cells import write
from tests.support.refusals import rows

NUMBERS = yaml.safe_load("""
lines: 500
before_replacement:
  bleu:
    tokenized: {score: 21.5, signature: "nrefs:1"}
    detokenized: {score: 22.5, signature: "nrefs:1"}
further: {WER: {score: 33.3, signature: null}}
sentences: {bleu_tokenized: eJw=}
manifest:
  sha256: {model.safetensors: 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a}
  weights: {model.safetensors: 0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b}
  processor: a processor
""")
# What of these stands in the ledger: also scores that no column shows, but not the cells of the
# length ratio, which this file lacks.
SCORE = """
lines: 500
processor: a processor
scores:
  bleu_tokenized_before_replacement: {score: 21.5, signature: "nrefs:1"}
  before_replacement.bleu.detokenized: {score: 22.5, signature: "nrefs:1"}
  WER: {score: 33.3, signature: null}
table_cells: ["table4, row 1, bleu", "figure2, row 13, bleu", "figure2, row 30, bleu"]
sentences: {bleu_tokenized: eJw=}
"""
TRAINING = """
validation_perplexity: 6.5
manifest:
  processor: a processor
  identity:
    data: {train.arrow: 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a}
"""
MANIFEST = NUMBERS["manifest"]
BEFORE = "bleu_tokenized_before_replacement"

pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture
def cell(demo: Settings) -> Cell:
    """BLEU of table 4's first row."""
    return cells(demo, "table4")[1]


def record_of(cell: Cell) -> str:
    """The record of a score's training, of which the row has the perplexity."""
    return str(Path(cell.paths[0]).with_name("training.json"))


@pytest.fixture
def ledger(demo: Settings, cell: Cell) -> Path:
    """A ledger of a score and a training."""
    training = write(record_of(cell), yaml.safe_load(TRAINING))
    model = Path(training).with_name("model.safetensors")
    save_file({"weight": np.arange(3, dtype=np.float32)}, model, {"convs2s": "a"})
    output = Path("ledger.jsonl")
    write_ledger(
        demo,
        cells=[*cells(demo, "table4"), *cells(demo, "figure2")],
        scores=[write(cell.paths[0], NUMBERS), training],
        published=None,
        output=output,
    )
    return output


def others_of(ledger: Path, words: str, others: str) -> str:
    """Write a ledger that has other words in the place of some; return the file."""
    text = ledger.read_text("utf-8")
    assert words in text
    Path("others.jsonl").write_text(text.replace(words, others), "utf-8")
    return "others.jsonl"


def test_a_line_holds_what_a_run_scored_and_on_what_it_rests(
    cell: Cell, ledger: Path
) -> None:
    score, trained = sorted(read_ledger(ledger), key=lambda one: one.lines is None)
    line = json.loads(score.line())
    assert line == {**line, **yaml.safe_load(SCORE), "file": cell.paths[0]}
    assert score.run == cell.records[0].run
    assert (score.sha256, score.weights) == (MANIFEST["sha256"], MANIFEST["weights"])
    assert score.fingerprint == fingerprint_of(score.inputs) != trained.fingerprint
    assert trained.scores == {"perplexity": RunScore(6.5, None)}
    assert (trained.run.testset, trained.run.decoding) == (None, None)
    # A training names its data and its model.
    (model,) = trained.weights
    assert trained.sha256 == {"train.arrow": "0a" * 32, model: sha256(Path(model))}
    # It is written as it is read.
    lines = [one.line() for one in read_ledger(ledger)]
    assert lines == ledger.read_text("utf-8").splitlines()
    assert '"processor": "à part"' in replace(score, processor="à part").line()


PROCESSORS = """
{processor: "an EPYC, AVX2"} => an EPYC => an EPYC, AVX2
{processor: an EPYC} => a Xeon => an EPYC; a Xeon
{processor: an EPYC, gpu: an H100} => an EPYC => an H100, an EPYC
"""


def test_a_score_names_the_processors_of_its_model_and_its_own(
    demo: Settings, cell: Cell
) -> None:
    for trained, scored, expected in rows(PROCESSORS):
        write(record_of(cell), {"manifest": yaml.safe_load(trained)})
        write(cell.paths[0], NUMBERS | {"manifest": MANIFEST | {"processor": scored}})
        (entry,) = entries_of(demo, [cell], cell.paths[:1])
        assert entry.processor == expected


def test_of_two_lines_of_a_run_the_later_counts(cell: Cell, ledger: Path) -> None:
    text = ledger.read_text("utf-8")
    ledger.write_text(text + text.replace("21.5", "9.5"), "utf-8")
    (found,) = results([cell], read_ledger(ledger))
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
        _, bleu, *_ = results(cells(demo, "table4"), found)
        assert bleu.scores["seed1"] == shown
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


def test_a_run_of_ones_own_comes_before_the_published_one(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    """The published run scored otherwise: rounding differs from machine to machine."""
    for words, others, score in (
        ('"score": 21.5', '"score": 30.0', 30.0),
        ("a processor", "another", 21.5),
    ):
        published = others_of(ledger, words, others)
        for own, shown in ((cell.paths[:1], (21.5, None)), ([], (score, published))):
            (found,) = results([cell], entries_of(demo, [cell], own, published))
            entry = found.entries["seed1"]
            assert (entry.scores[BEFORE].score, entry.origin) == shown


def test_published_runs_are_in_the_ledger_under_our_names(
    demo: Settings, cell: Cell, ledger: Path
) -> None:
    """Names are no part of a fingerprint: another configuration may have others."""
    run = '"run": {"task": "%s"'
    others = others_of(ledger, run % cell.task, run % "captions")
    measured = [*cells(demo, "table2"), *cells(demo, "table4")]
    output = Path("ours.jsonl")
    write_ledger(demo, cells=measured, scores=[], published=others, output=output)
    found = [
        (one.origin, one.run.task, *one.table_cells) for one in read_ledger(output)
    ]
    assert sorted(found) == [
        (others, cell.task, "table4, row 1, bleu"),
        (others, cell.task, "table4, row 1, ppl"),
    ]
