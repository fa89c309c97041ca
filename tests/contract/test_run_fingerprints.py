"""What a run is known by before it runs: each setting that can change a number, and no other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.load import load
from convs2s.demo.corpus import CORPUS_SHA256
from convs2s.paper import run_inputs
from convs2s.paper.cells import Cell
from convs2s.paper.ledger import RunNames, fingerprint_of
from tests.support.cells import cells

MODEL, TASK = "wmt16_en_ro", "wmt16_en_ro"


def cell(root: Path, table: str = "table1", row: int = 2, **options: Any) -> Cell:
    settings = load(root, {"scale": "paper", **options})
    return next(one for one in cells(settings, table) if one.address.row == row)


@pytest.fixture(scope="module")
def romanian(root: Path) -> Cell:
    """A cell of the configuration as it comes."""
    return cell(root)


def fingerprints(one: Cell) -> list[str]:
    return [record.fingerprint for record in one.records]


def override(kind: str, name: str, **values: Any) -> dict[str, Any]:
    return {"overrides": {kind: {name: values}}}


def test_each_run_has_a_fingerprint_of_its_own(root: Path) -> None:
    for scale in ("paper", "multi30k", "multi30k_trained", "demo"):
        settings = load(root, {"scale": scale})
        paths: dict[str, set[str]] = {}
        for name in settings.paper:
            for one in cells(settings, name):
                for record in one.records:
                    paths.setdefault(record.fingerprint, set()).add(record.file)
        assert all(len(same) == 1 for same in paths.values())
        assert len(paths) == len(set.union(*paths.values())) > 50


@pytest.mark.parametrize(
    "options",
    [
        override("models", MODEL, training={"clip": 0.2}),
        override("models", MODEL, architecture={"dropout": 0.3}),
        override("decodings", "beam5", beam=4),
        override("decodings", "beam5", cuda_graphs=True),
        override("tasks", TASK, clean={"maximum": 60}),
        override("tasks", TASK, clean={"tokens": 512}),
        override("tasks", TASK, clean={"tokens": None}),
        override("tasks", TASK, vocabulary={"merges": 100}),
        override("tasks", TASK, preparation={"truecase": False}),
    ],
)
def test_what_changes_a_number_changes_the_fingerprint(
    root: Path, romanian: Cell, options: dict[str, Any]
) -> None:
    after = cell(root, **options)
    assert romanian.paths == after.paths
    assert not set(fingerprints(romanian)) & set(fingerprints(after))


@pytest.mark.parametrize(
    "options",
    [
        override("models", MODEL, description="in other words"),
        override("models", MODEL, training={"threads": 7, "checkpoint_minutes": 1.0}),
        override("models", "lstm", training={"clip": 0.2}),
        override("decodings", "greedy", beam=4),
        override("tasks", TASK, description="in other words", paper_pairs=1),
        {"cores": 3, "device": "cpu", "scatter_above": 0},
    ],
)
def test_what_changes_no_number_leaves_it(
    root: Path, romanian: Cell, options: dict[str, Any]
) -> None:
    assert fingerprints(romanian) == fingerprints(cell(root, **options))


@pytest.mark.parametrize(
    "stated",
    [
        lambda model: override(
            "models", MODEL, training={"start": {"from": model, "as": "initialise"}}
        ),
        lambda model: override("tasks", TASK, vocabulary_of=model),
    ],
    ids=["start", "vocabulary_of"],
)
def test_a_model_that_another_begins_with_counts(
    root: Path, romanian: Cell, stated: Callable[[str], dict[str, Any]]
) -> None:
    known = [set(fingerprints(romanian))]
    known += [
        set(fingerprints(cell(root, **stated(f"{name}.safetensors")))) for name in "ab"
    ]
    assert len(set.union(*known)) == sum(map(len, known)) > 0


def of_task(root: Path, task: str, aligner: str, decoding: str | None = "beam5") -> str:
    given = override("tasks", "demo_en_fr", alignment={"aligner": aligner})
    inputs = run_inputs.RunInputs(load(root, {"scale": "demo", **given}))
    numbers = "bleu.json" if decoding else "training.json"
    run = RunNames(task, "demo", "seed1", "test", decoding)
    return fingerprint_of(inputs.of(numbers, run))


@pytest.mark.parametrize(
    ("task", "decoding", "is_read"),
    [
        ("demo_en_fr_word", "beam5", True),
        ("demo_en_fr_word", "lstm_beam12", False),
        ("demo_en_fr_word", None, False),
        ("demo_en_fr", "beam5", False),
    ],
)
def test_the_aligner_counts_where_unknown_words_are_replaced_by_its_links(
    root: Path, task: str, decoding: str | None, is_read: bool
) -> None:
    own, other = (
        of_task(root, task, name, decoding) for name in ("fast_align", "eflomal")
    )
    assert (own != other) == is_read


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRAINING_VERSION", 99),
        ("CORPUS_SHA256", dict.fromkeys(CORPUS_SHA256, "another")),
    ],
)
def test_versions_count(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    before = fingerprints(cell(root, scale="demo"))
    monkeypatch.setattr(run_inputs, name, value)
    assert not set(before) & set(fingerprints(cell(root, scale="demo")))


def test_checksums_of_downloads_count(copy: Path, romanian: Cell) -> None:
    """Those of a file change the runs of a task that reads it, and no others."""
    german = fingerprints(cell(copy, row=7))
    file = copy / "config/downloads.yaml"
    known = "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7"
    file.write_text(file.read_text("utf-8").replace(known, "0a" * 32), "utf-8")
    assert fingerprints(cell(copy, row=7)) != german
    assert fingerprints(cell(copy)) == fingerprints(romanian)


def test_the_set_that_a_penalty_is_tuned_on_counts(root: Path) -> None:
    before = cell(root, row=7)
    penalty = override("decodings", "beam5_en_de", length_penalty={"tuned_on": "valid"})
    assert before.decoding == "beam5_en_de"
    assert fingerprints(before) != fingerprints(cell(root, row=7, **penalty))
