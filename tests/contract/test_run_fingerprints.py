"""What a run is known by before it runs: each setting that can change a number, and no other."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.demo.corpus import CORPUS_SHA256
from convs2s.paper import run_inputs
from convs2s.paper.cells import cells
from convs2s.paper.ledger import RunNames

CHANGES = """
models: {wmt16_en_ro: {training: {clip: 0.2}}}
models: {wmt16_en_ro: {architecture: {dropout: 0.3}}}
models: {wmt16_en_ro: {training: {start: {from: a.safetensors, as: initialise}}}}
decodings: {beam5: {beam: 4}}
decodings: {beam5: {length_penalty: {tuned_on: valid}}}
tasks: {wmt16_en_ro: {clean: {maximum: 60}}}
tasks: {wmt16_en_ro: {clean: {tokens: null}}}
tasks: {wmt16_en_ro: {vocabulary: {merges: 100}}}
tasks: {wmt16_en_ro: {vocabulary_of: a.safetensors}}
tasks: {wmt16_en_ro: {preparation: {truecase: false}}}
"""
"""Each changes the numbers of English-Romanian."""

NO_CHANGES = """
models:
  wmt16_en_ro:
    description: in other words
    training: {threads: 7, checkpoint_minutes: 1.0}
  lstm: {training: {clip: 0.2}}
decodings: {greedy: {beam: 4}}
tasks: {wmt16_en_ro: {description: in other words, paper_pairs: 1}}
"""


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


def changed(root: Path, overrides: str, scale: str = "paper") -> Settings:
    return load(root, {"scale": scale, "overrides": yaml.safe_load(overrides)})


def test_each_run_has_a_fingerprint_of_its_own(root: Path) -> None:
    for scale in ("paper", "multi30k", "multi30k_trained", "demo"):
        settings = load(root, {"scale": scale})
        pairs = {
            (record.fingerprint, record.file)
            for name in settings.paper
            for cell in cells(settings, name)
            for record in cell.records
        }
        prints, files = map(set, zip(*pairs, strict=True))
        assert len(pairs) == len(prints) == len(files) > 50


def test_what_changes_a_number_and_nothing_else_changes_the_fingerprint(
    root: Path, paper: Settings
) -> None:
    before = fingerprints(paper)
    assert fingerprints(changed(root, NO_CHANGES)) == before
    for change in CHANGES.strip().splitlines():
        after = fingerprints(changed(root, change))
        assert len(after) == 3
        assert not after & before, change


def test_options_count_where_they_change_a_number(root: Path, paper: Settings) -> None:
    options = {"cores": 3, "device": "cpu", "scatter_above": 0}
    other = load(root, {**options, "rouge_exceptions": "wordnet.db"})
    assert fingerprints(other) == fingerprints(paper)
    before = fingerprints(paper, 3, "table6")
    assert len(before) == 3
    assert not fingerprints(other, 3, "table6") & before
    cut = changed(root, "tasks: {gigaword: {rouge: {duc2004: {bytes: 80}}}}")
    assert not fingerprints(cut, 3, "table6") & before
    # The perplexity of a training is of no decoding.
    table4 = fingerprints(paper, 0, "table4")
    beam = changed(root, "decodings: {beam5: {beam: 4}}")
    assert len(table4 & fingerprints(beam, 0, "table4")) == len(table4) / 2


def test_the_aligner_counts_where_unknown_words_are_replaced_by_its_links(
    root: Path, demo: Settings
) -> None:
    eflomal = "tasks: {demo_en_fr: {alignment: {aligner: eflomal}}}"
    other = changed(root, eflomal, "demo")
    for task, decoding, is_read in (
        ("demo_en_fr_word", "beam5", True),
        ("demo_en_fr_word", "lstm_beam12", False),
        ("demo_en_fr_word", None, False),
        ("demo_en_fr", "beam5", False),
    ):
        run = RunNames(task, "demo", "seed1", "test", decoding)
        before, after = (
            run_inputs.RunInputs(settings).of("bleu.json", run)
            for settings in (demo, other)
        )
        assert (before != after) == is_read


def test_versions_count(demo: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprints(demo)
    with monkeypatch.context() as patch:
        patch.setattr(run_inputs, "TRAINING_VERSION", 99)
        assert not before & fingerprints(demo)
    others = dict.fromkeys(CORPUS_SHA256, "another")
    monkeypatch.setattr(run_inputs, "CORPUS_SHA256", others)
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
