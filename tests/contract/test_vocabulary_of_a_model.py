"""A task's codes and vocabularies out of a model file."""

from pathlib import Path
from typing import Literal

import pytest

from convs2s.data.vocabulary import read_counts
from convs2s.interop.taken_vocabulary import take_codes, take_vocabulary
from convs2s.model_file import load_model, save_model
from convs2s.text.bpe import read_codes
from tests.support.archives import flipped
from tests.support.golden import import_trained
from tests.support.refusals import refusal, says


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_trained(tmp_path_factory.mktemp("model"))


@pytest.fixture
def words(tmp_path: Path) -> Path:
    table = tmp_path / "words.tsv"
    table.write_text("type\tcount\nthe\t3\nthethe\t2\nw3\t7\n")
    return table


def codes_of(model: Path, folder: Path) -> str:
    take_codes(model=model, output=folder / "codes")
    return read_codes(folder / "codes")


def counts_of(
    model: Path,
    words: Path,
    kind: str = "bpe",
    side: Literal["source", "target"] = "source",
) -> dict[str, int]:
    """Take a vocabulary; return how often each of its types occurs in the text."""
    output = words.with_name("types.tsv")
    take_vocabulary(model=model, words=words, side=side, vocabulary=kind, output=output)
    return dict(read_counts(output))


def test_codes_and_types_are_the_models_and_counts_the_texts(
    imported: Path, words: Path, tmp_path: Path
) -> None:
    _, description = load_model(imported)
    assert codes_of(imported, tmp_path) == description.bpe_codes
    target = counts_of(imported, words, side="target")
    assert list(target) == description.target_types
    counts = counts_of(imported, words)
    assert list(counts) == description.source_types
    # "thethe" ends with it, unless the codes split it elsewhere.
    assert counts["the"] in (3, 5)
    assert 0 in counts.values()


def test_a_model_of_words_gives_a_word_task_its_words(
    model: Path, words: Path, tmp_path: Path
) -> None:
    says(refusal(codes_of, model, tmp_path), "whole words", "no BPE codes")
    counts = counts_of(model, words, "word")
    assert counts["w3"] == 7
    assert "the" not in counts
    said = refusal(counts_of, model, words)
    says(said, "is of the kind word: write `kind: word`")


def test_what_a_model_file_does_not_hold_is_refused(
    imported: Path, words: Path, tmp_path: Path
) -> None:
    network, description = load_model(imported)
    weights = network.state_dict()
    changed = tmp_path / "changed"
    described = description.model_copy(update={"splittable": ["the"]})
    save_model(changed, weights, described)
    says(refusal(counts_of, changed, words), "its vocabulary has a threshold")
    others = [f"other{number}" for number in range(len(description.target_types))]
    described = description.model_copy(update={"target_types": others})
    save_model(changed, weights, described)
    says(refusal(codes_of, changed, tmp_path), "the two sides have different codes")
    content = imported.read_bytes()
    changed.write_bytes(flipped(content, 8 * len(content) - 4))
    damaged = "damaged: its content does not match its digest"
    says(refusal(codes_of, changed, tmp_path), damaged)
    says(refusal(counts_of, changed, words), damaged)
