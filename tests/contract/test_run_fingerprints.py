"""What a run is known by before it runs: each setting that can change a number, and no other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.demo.corpus import CORPUS_SHA256
from convs2s.paper import run_inputs
from convs2s.paper.cells import cells
from convs2s.paper.ledger import RunNames, fingerprint_of

MODEL, TASK = "wmt16_en_ro", "wmt16_en_ro"
PENALTY = {"length_penalty": {"tuned_on": "valid"}}


def fingerprints(settings: Settings, row: int = 2, table: str = "table1") -> set[str]:
    """Those of a row's runs, of English-Romanian if nothing else is said."""
    found = {
        record.fingerprint
        for cell in cells(settings, table)
        for record in cell.records
        if cell.address.row == row
    }
    assert found
    return found


def changed(root: Path, kind: str, name: str, **values: Any) -> Settings:
    return load(root, {"scale": "paper", "overrides": {kind: {name: values}}})


@pytest.mark.parametrize("scale", ["paper", "multi30k", "multi30k_trained", "demo"])
def test_each_run_has_a_fingerprint_of_its_own(root: Path, scale: str) -> None:
    settings = load(root, {"scale": scale})
    pairs = {
        (record.fingerprint, record.file)
        for name in settings.paper
        for cell in cells(settings, name)
        for record in cell.records
    }
    prints, files = map(set, zip(*pairs, strict=True))
    assert len(pairs) == len(prints) == len(files) > 50


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        ("models", MODEL, {"training": {"clip": 0.2}}),
        ("models", MODEL, {"architecture": {"dropout": 0.3}}),
        (
            "models",
            MODEL,
            {"training": {"start": {"from": "a.safetensors", "as": "initialise"}}},
        ),
        ("decodings", "beam5", {"beam": 4}),
        ("decodings", "beam5", PENALTY),
        ("tasks", TASK, {"clean": {"maximum": 60}}),
        ("tasks", TASK, {"clean": {"tokens": None}}),
        ("tasks", TASK, {"vocabulary": {"merges": 100}}),
        ("tasks", TASK, {"vocabulary_of": "a.safetensors"}),
        ("tasks", TASK, {"preparation": {"truecase": False}}),
    ],
)
def test_what_changes_a_number_changes_the_fingerprint(
    root: Path, paper: Settings, kind: str, name: str, values: dict[str, Any]
) -> None:
    after = fingerprints(changed(root, kind, name, **values))
    assert len(after) == 3
    assert not after & fingerprints(paper)


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        ("models", MODEL, {"description": "in other words"}),
        ("models", MODEL, {"training": {"threads": 7, "checkpoint_minutes": 1.0}}),
        ("models", "lstm", {"training": {"clip": 0.2}}),
        ("decodings", "greedy", {"beam": 4}),
        ("tasks", TASK, {"description": "in other words", "paper_pairs": 1}),
    ],
)
def test_what_changes_no_number_leaves_it(
    root: Path, paper: Settings, kind: str, name: str, values: dict[str, Any]
) -> None:
    after = changed(root, kind, name, **values)
    assert fingerprints(after) == fingerprints(paper)


def test_options_count_where_they_change_a_number(root: Path, paper: Settings) -> None:
    machine = load(root, {"cores": 3, "device": "cpu", "scatter_above": 0})
    assert fingerprints(machine) == fingerprints(paper)
    rouge = load(root, {"rouge_exceptions": "wordnet.db"})
    before = fingerprints(paper, 3, "table6")
    assert len(before) == 3
    assert not fingerprints(rouge, 3, "table6") & before
    # The perplexity of a training is of no decoding.
    beam = changed(root, "decodings", "beam5", beam=4)
    table4 = fingerprints(paper, 0, "table4")
    assert len(table4 & fingerprints(beam, 0, "table4")) == len(table4) / 2


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
    run = RunNames(task, "demo", "seed1", "test", decoding)
    found = set()
    for aligner in ("fast_align", "eflomal"):
        stated = {"tasks": {"demo_en_fr": {"alignment": {"aligner": aligner}}}}
        settings = load(root, {"scale": "demo", "overrides": stated})
        found.add(fingerprint_of(run_inputs.RunInputs(settings).of("bleu.json", run)))
    assert (len(found) == 2) == is_read


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRAINING_VERSION", 99),
        ("CORPUS_SHA256", dict.fromkeys(CORPUS_SHA256, "another")),
    ],
)
def test_versions_count(
    demo: Settings, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    before = fingerprints(demo)
    monkeypatch.setattr(run_inputs, name, value)
    assert not before & fingerprints(demo)


def test_checksums_of_downloads_count(paper: Settings) -> None:
    """Those of a file change the runs of a task that reads it, and no others."""
    downloads = {
        address: known.model_copy(update={"sha256": "0a" * 32})
        for address, known in paper.downloads.items()
        if "commoncrawl" in address
    }
    other = replace(paper, downloads={**paper.downloads, **downloads})
    assert not fingerprints(other, row=7) & fingerprints(paper, row=7)
    assert fingerprints(other) == fingerprints(paper)
