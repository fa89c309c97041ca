"""The ledger: a line for each run that is there, nothing typed in."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.paper import ledger as ledger_module
from convs2s.paper.cells import CellAddress
from convs2s.paper.ledger import LedgerEntry, RunScore, fingerprint_of, read_ledger
from convs2s.paper.results import entries_of, results, runs_by_cell, write_ledger
from tests.support.cells import cells, write

DIGEST = "0a" * 32
SCORED = {"tokenized": {"score": 21.5, "signature": "nrefs:1"}}
MANIFEST = {"sha256": {"model.safetensors": DIGEST}, "processor": "a processor"}
NUMBERS = {"lines": 500, "before_replacement": {"bleu": SCORED}, "manifest": MANIFEST}


pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture
def ledger(demo: Settings) -> Path:
    """A ledger of table 4's first row: a score and a training."""
    score, training = (path(demo, column) for column in ("bleu", "ppl"))
    trained = {
        "identity": {"data": {"train.arrow": DIGEST}},
        "processor": "a processor",
    }
    write(score, NUMBERS | {"sentences": {"bleu_tokenized": "eJw="}})
    write(training, {"validation_perplexity": 6.5, "manifest": trained})
    write_model(Path(training).with_name("model.safetensors"), "a model")
    measured = [
        cell for name in ("table1", "table4", "figure2") for cell in cells(demo, name)
    ]
    output = Path("ledger.jsonl")
    there = [score, training]
    write_ledger(demo, cells=measured, scores=there, published=None, output=output)
    return output


def test_a_score_names_the_processors_of_its_model_and_its_own(demo: Settings) -> None:
    score, training = (path(demo, column) for column in ("bleu", "ppl"))
    cell = [one for one in cells(demo, "table4") if one.address.column == "bleu"][:1]
    named = {
        ("an EPYC, AVX2, torch 2.13.0", "an EPYC, AVX2"): "an EPYC, AVX2, torch 2.13.0",
        ("an EPYC", "a Xeon"): "an EPYC; a Xeon",
        (None, "a Xeon"): "a Xeon",
        (None, None): None,
    }
    for (trained, scored), expected in named.items():
        write(
            training, {"validation_perplexity": 6.5, "manifest": {"processor": trained}}
        )
        write(score, NUMBERS | {"manifest": MANIFEST | {"processor": scored}})
        (entry,) = entries_of(demo, cell, [score])
        assert entry.processor == expected
    write(training, {"manifest": {"processor": "an EPYC", "gpu": "an H100"}})
    write(score, NUMBERS | {"manifest": MANIFEST | {"processor": "an EPYC"}})
    (entry,) = entries_of(demo, cell, [score])
    assert entry.processor == "an H100, an EPYC"
    write(training, [])
    with pytest.raises(
        UserError, match=r"training\.json: not the record of a training"
    ):
        entries_of(demo, cell, [score])


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"manifest": []},
        {"before_replacement": {"bleu": {"tokenized": {"score": 1}}}},
    ],
)
def test_a_damaged_file_of_numbers_is_named(demo: Settings, content: object) -> None:
    score = path(demo, "bleu")
    write(score, content)
    with pytest.raises(
        UserError, match=r"bleu\.json: not a file of numbers; delete the file"
    ):
        entries_of(demo, cells(demo, "table4"), [score])


def path(settings: Settings, column: str) -> str:
    cell = next(
        one for one in cells(settings, "table4") if one.address.column == column
    )
    return cell.paths[0]


def test_a_line_holds_what_a_run_scored_and_on_what_it_rests(
    demo: Settings, ledger: Path
) -> None:
    score, perplexity = sorted(read_ledger(ledger), key=lambda one: one.lines is None)
    assert (score.file, perplexity.file) == (path(demo, "bleu"), path(demo, "ppl"))
    assert score.scores == {
        "bleu_tokenized_before_replacement": RunScore(21.5, "nrefs:1")
    }
    # Not those of the length ratio, which this file lacks.
    rows = ("table4, row 1", "figure2, row 13", "figure2, row 30")
    assert set(score.table_cells) == {f"{row}, bleu" for row in rows}
    assert (score.lines, score.processor) == (500, "a processor")
    assert score.sha256 == MANIFEST["sha256"]
    assert (score.run.run, score.run.decoding) == ("seed1", "beam5")
    assert (perplexity.run.testset, perplexity.run.decoding) == (None, None)
    assert score.sentences == {"bleu_tokenized": "eJw="}
    assert perplexity.scores == {"perplexity": RunScore(6.5, None)}
    assert score.fingerprint != perplexity.fingerprint
    assert score.fingerprint == fingerprint_of(score.inputs)


def write_model(path: Path, says: str) -> str:
    """Write a file of one weight and of what else a model file says; return its name."""
    save_file({"weight": np.arange(3, dtype=np.float32)}, path, {"convs2s": says})
    return str(path)


def test_a_training_names_its_data_and_its_model(demo: Settings, ledger: Path) -> None:
    training = next(one for one in read_ledger(ledger) if "perplexity" in one.scores)
    (model,) = training.weights
    assert training.sha256 == {"train.arrow": DIGEST, model: sha256(model)}
    assert training.model_files == (sha256(model),)
    write_model(Path(model), "the same model, with another dictionary")
    cell = next(cell for cell in cells(demo, "table4") if cell.address.column == "ppl")
    (again,) = entries_of(demo, [cell], cell.paths)
    assert again.weights == training.weights
    assert again.model_files != training.model_files


def test_a_score_keeps_the_weights_that_its_file_states(demo: Settings) -> None:
    score = path(demo, "bleu")
    stated = MANIFEST | {"weights": {"model.safetensors": "0b" * 32}}
    write(score, NUMBERS | {"manifest": stated})
    cell = next(cell for cell in cells(demo, "table4") if cell.address.column == "bleu")
    (entry,) = entries_of(demo, [cell], [score])
    assert (entry.sha256, entry.weights) == (MANIFEST["sha256"], stated["weights"])


def test_cells_show_what_the_ledger_holds_with_no_results_folder(
    demo: Settings, ledger: Path
) -> None:
    entries = read_ledger(ledger)
    for entry in entries:
        Path(entry.file).unlink()
    found = {
        (one.address.row, one.address.column): one
        for one in results(cells(demo, "table4"), entries)
    }
    assert found[0, "bleu"].scores == {"seed1": 21.5}
    assert found[0, "ppl"].mean == 6.5
    assert found[1, "bleu"].mean is None


def test_a_run_of_other_inputs_is_not_shown(root: Path, ledger: Path) -> None:
    overrides = {"decodings": {"beam5": {"beam": 4}}}
    changed = load(root, {"scale": "demo", "overrides": overrides})
    found = {
        one.address.column: one.mean
        for one in results(cells(changed, "table4"), read_ledger(ledger))
        if one.address.row == 0
    }
    assert found == {"bleu": None, "length": None, "ppl": 6.5}


def test_of_two_lines_of_a_run_the_later_counts(demo: Settings, ledger: Path) -> None:
    first = ledger.read_text("utf-8")
    later = first.replace('"score": 21.5', '"score": 22.5')
    assert later != first
    ledger.write_text(first + later, "utf-8")
    cell = next(cell for cell in cells(demo, "table4") if cell.address.column == "bleu")
    for entries in (read_ledger(ledger), entries_of(demo, [cell], [], str(ledger))):
        (found,) = results([cell], entries)
        assert found.scores == {"seed1": 22.5}


def test_of_a_run_on_two_processors_that_of_the_most_runs_is_shown(
    demo: Settings, ledger: Path
) -> None:
    lines = ledger.read_text("utf-8").splitlines()
    score = next(json.loads(line) for line in lines if '"score": 21.5' in line)
    elsewhere = score | {"processor": "another"}
    elsewhere["scores"] = {
        name: of | {"score": 30.0} for name, of in score["scores"].items()
    }
    ledger.write_text(
        "".join(f"{line}\n" for line in (json.dumps(elsewhere), *lines)), "utf-8"
    )
    assert len(read_ledger(ledger)) == len(lines) + 1
    for entries in (
        read_ledger(ledger),
        entries_of(demo, cells(demo, "table4"), [], str(ledger)),
    ):
        shown = results(cells(demo, "table4"), entries)
        assert {one.mean for one in shown if one.address.column == "bleu"} == {
            21.5,
            None,
        }


def test_a_number_that_one_processor_has_is_shown(demo: Settings, ledger: Path) -> None:
    """The processor of most runs made this run without that number."""
    entries = read_ledger(ledger)
    (score,) = (entry for entry in entries if "perplexity" not in entry.scores)
    ratio = {"length_ratio": RunScore(0.9, None)}
    elsewhere = replace(score, processor="a Xeon", scores={**score.scores, **ratio})
    shown = results(cells(demo, "table4"), [elsewhere, *entries])
    found = {one.measure: one.entries["seed1"] for one in shown if one.entries}
    assert found["length_ratio"].scores == elsewhere.scores
    assert found["bleu_tokenized_before_replacement"].processor == score.processor


def test_a_recipe_under_two_names_is_one_run_in_the_cells_of_both(
    demo: Settings, ledger: Path
) -> None:
    cell = next(cell for cell in cells(demo, "table4") if cell.address.column == "bleu")
    moved = tuple(replace(one, file=f"other/{one.file}") for one in cell.records)
    other = replace(cell, address=CellAddress("table5", 0, "bleu"), records=moved)
    write(other.paths[0], NUMBERS)
    there, output = [cell.paths[0], other.paths[0]], Path("ours.jsonl")
    write_ledger(demo, cells=[cell, other], scores=there, published=None, output=output)
    (entry,) = read_ledger(output)
    assert set(entry.table_cells) == {str(cell.address), str(other.address)}


def test_the_same_ledger_published_is_marked(demo: Settings, ledger: Path) -> None:
    cell = next(cell for cell in cells(demo, "table4") if cell.address.column == "bleu")
    (published,) = results([cell], entries_of(demo, [cell], [], str(ledger)))
    (own,) = results([cell], entries_of(demo, [cell], cell.paths[:1], str(ledger)))
    assert [entry.origin for entry in published.entries.values()] == ["ledger.jsonl"]
    assert [entry.origin for entry in own.entries.values()] == [None]
    assert published.scores == own.scores


def test_a_run_of_ones_own_comes_before_the_published_one(
    demo: Settings, ledger: Path
) -> None:
    """The published run scored otherwise: rounding differs from machine to machine."""
    lines = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    for line in lines:
        for score in line["scores"].values():
            score["score"] += 1
    others = Path("others.jsonl")
    others.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    cell = next(cell for cell in cells(demo, "table4") if cell.address.column == "bleu")
    (alone,) = results([cell], entries_of(demo, [cell], cell.paths[:1]))
    (both,) = results([cell], entries_of(demo, [cell], cell.paths[:1], str(others)))
    (theirs,) = results([cell], entries_of(demo, [cell], [], str(others)))
    assert both.scores == alone.scores
    assert theirs.scores == {run: score + 1 for run, score in alone.scores.items()}
    assert both.entries["seed1"].origin is None
    assert theirs.entries["seed1"].origin == "others.jsonl"
    elsewhere = [json.dumps(line | {"processor": "another"}) for line in lines]
    others.write_text("".join(f"{line}\n" for line in elsewhere), "utf-8")
    entries = entries_of(demo, [cell], cell.paths[:1], str(others))
    # May be equal.
    assert [entry.processor for entry in entries] == ["a processor", "another"]
    assert results([cell], entries)[0].entries == {"seed1": entries[0]}


def test_published_runs_are_in_the_ledger_of_the_tables_that_show_them(
    demo: Settings, ledger: Path
) -> None:
    score = path(demo, "bleu")
    measured = [*cells(demo, "table2"), *cells(demo, "table4")]
    output = Path("ours.jsonl")
    write_ledger(
        demo, cells=measured, scores=[score], published=str(ledger), output=output
    )
    own, taken = read_ledger(output)
    assert (own.file, own.origin) == (score, None)
    assert (taken.file, taken.origin) == (path(demo, "ppl"), "ledger.jsonl")
    assert taken.table_cells == ("table4, row 1, ppl",)
    write_ledger(
        demo,
        cells=cells(demo, "table4"),
        scores=[],
        published=str(ledger),
        output=output,
    )
    assert [one.table_cells for one in read_ledger(output)] == [
        ("table4, row 1, bleu",),
        ("table4, row 1, ppl",),
    ]


def test_published_runs_have_our_names_and_the_measures_that_they_hold(
    demo: Settings, ledger: Path
) -> None:
    """Names are no part of a fingerprint: another configuration may have others."""
    lines = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    for line in lines:
        line["run"]["task"] = "captions"
        line["scores"].pop("bleu_tokenized_before_replacement", None)
    others = Path("others.jsonl")
    others.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    measured, output = cells(demo, "table4"), Path("ours.jsonl")
    write_ledger(demo, cells=measured, scores=[], published=str(others), output=output)
    (taken,) = read_ledger(output)
    assert taken.table_cells == ("table4, row 1, ppl",)
    assert taken.run.task == measured[0].task
    ours = runs_by_cell(measured, read_ledger(others))
    assert {entry.run.task for runs in ours.values() for entry in runs} == {
        taken.run.task
    }


# ---- what anybody may have written ----


def change(line: str, **changed: Any) -> str:
    return json.dumps({**json.loads(line), **changed})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"fingerprint": DIGEST}, "the inputs of this run do not give its fingerprint"),
        (
            {"inputs": {"run": "seed2"}},
            "the inputs of this run do not give its fingerprint",
        ),
        ({"fingerprint": "abc"}, "fingerprint: String should match pattern"),
        ({"extra": 1}, "extra: "),
        ({"lines": "many"}, "lines: Input should be a valid integer"),
        ({"lines": -1}, "lines: "),
        (
            {"scores": {"perplexity": {"score": "6.5", "signature": None}}},
            "scores.perplexity.score",
        ),
        (
            {"scores": {"perplexity": {"score": 6.5}}},
            "scores.perplexity.signature: Field required",
        ),
        ({"processor": "<script>"}, "processor: String should match pattern"),
        ({"processor": "[a](http://h)"}, "processor: String should match pattern"),
        ({"processor": "![]](h)"}, "processor: String should match pattern"),
        (
            {"processor": "\N{RIGHT-TO-LEFT OVERRIDE}a"},
            "processor: String should match pattern",
        ),
        (
            {"processor": "a\N{LINE SEPARATOR}b"},
            "processor: String should match pattern",
        ),
        ({"revision": "a\\|b"}, "revision: String should match pattern"),
        ({"file": "a\nb"}, "file: String should match pattern"),
        ({"sha256": {"model": "../model"}}, "sha256.model"),
        ({"sentences": {"bleu_tokenized": "{"}}, "sentences.bleu_tokenized"),
        ({"weights": {"model": "../model"}}, "weights.model"),
        (
            {"table_cells": ["<b>table1</b>"]},
            "table_cells.0: String should match pattern",
        ),
        ({"run": {"task": "demo"}}, "run.model: Field required"),
        ({"date": "yesterday"}, "date: String should match pattern"),
    ],
)
def test_a_changed_line_is_refused(
    ledger: Path, changed: dict[str, Any], said: str
) -> None:
    first, second = ledger.read_text("utf-8").splitlines()
    ledger.write_text(f"{first}\n{change(second, **changed)}\n", "utf-8")
    with pytest.raises(UserError) as caught:
        read_ledger(ledger)
    message = str(caught.value)
    assert message.startswith("ledger.jsonl:2: ")
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"",
        b"\xff",
        b"[" * 100_000,
        b'{"fingerprint": "a"}',
        b'{"scores": {"a": {"score": NaN, "signature": null}}}',
    ],
)
def test_what_is_no_line_of_a_ledger_is_refused(ledger: Path, line: bytes) -> None:
    ledger.write_bytes(line + b"\n")
    with pytest.raises(
        UserError, match=r"^ledger\.jsonl:1: not an entry of a ledger: "
    ):
        read_ledger(ledger)


def test_a_number_that_is_none_is_refused(ledger: Path) -> None:
    text = ledger.read_text("utf-8")
    ledger.write_text(text.replace('"score": 21.5', '"score": NaN'), "utf-8")
    with pytest.raises(
        UserError, match=r"ledger\.jsonl:\d: not an entry of a ledger: .*finite"
    ):
        read_ledger(ledger)


def test_what_is_too_large_is_refused(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "MOST_BYTES", ledger.stat().st_size)
    longest = max(map(len, ledger.read_bytes().splitlines(keepends=True)))
    monkeypatch.setattr(ledger_module, "MOST_LINE_BYTES", longest)
    assert len(read_ledger(ledger)) == 2
    monkeypatch.setattr(ledger_module, "MOST_LINE_BYTES", 100)
    with pytest.raises(
        UserError, match=r"^ledger\.jsonl:1: a line of more than 100 bytes"
    ):
        read_ledger(ledger)
    monkeypatch.setattr(ledger_module, "MOST_BYTES", 1 << 10)
    with pytest.raises(UserError, match=r"^ledger\.jsonl: more than 0 MiB"):
        read_ledger(ledger)


def test_a_missing_ledger_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file: expected a ledger"):
        read_ledger(tmp_path / "none.jsonl")


def test_an_entry_is_written_as_it_is_read(ledger: Path) -> None:
    entries = read_ledger(ledger)
    assert all(isinstance(one, LedgerEntry) for one in entries)
    lines = [one.line() for one in entries]
    assert lines == ledger.read_text("utf-8").splitlines()
    assert '"processor": "à part"' in replace(entries[0], processor="à part").line()
