"""A task's codes and vocabularies out of a model file."""

from functools import partial
from pathlib import Path

import pytest

from convs2s.data.vocabulary import read_counts
from convs2s.interop.taken_vocabulary import take_codes, take_vocabulary
from convs2s.model_file import load_model, save_model
from convs2s.text.bpe import read_codes
from tests.support.damage import flipped
from tests.support.refusals import refusal, says
from tests.support.trained import import_trained


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_trained(tmp_path_factory.mktemp("model"))


@pytest.fixture
def words(tmp_path: Path) -> Path:
    table = tmp_path / "words.tsv"
    table.write_text("type\tcount\nthe\t3\nthethe\t2\nw3\t7\n")
    return table


def test_codes_and_types_are_the_models_and_counts_the_texts(
    imported: Path, words: Path, tmp_path: Path
) -> None:
    _, description = load_model(imported)
    take_codes(model=imported, output=tmp_path / "codes")
    assert read_codes(tmp_path / "codes") == description.bpe_codes
    output = tmp_path / "types.tsv"
    take = partial(take_vocabulary, model=imported, words=words, output=output)
    take(vocabulary="bpe", side="target")
    assert list(dict(read_counts(output))) == description.target_types
    take(vocabulary="bpe", side="source")
    counts = dict(read_counts(output))
    assert list(counts) == description.source_types
    # "thethe" ends with it, unless the codes split it elsewhere.
    assert counts["the"] in (3, 5)
    assert 0 in counts.values()


def test_a_model_of_words_gives_a_word_task_its_words(
    model: Path, words: Path, tmp_path: Path
) -> None:
    says(refusal(take_codes, model=model, output=words), "whole words", "no BPE codes")
    output = tmp_path / "en.tsv"
    take = partial(
        take_vocabulary, model=model, words=words, side="source", output=output
    )
    take(vocabulary="word")
    counts = dict(read_counts(output))
    assert counts["w3"] == 7
    assert "the" not in counts
    says(refusal(take, vocabulary="bpe"), "is of the kind word: write `kind: word`")


def test_what_a_model_file_does_not_hold_is_refused(
    imported: Path, words: Path, tmp_path: Path
) -> None:
    network, description = load_model(imported)
    changed = tmp_path / "changed"
    codes = partial(take_codes, model=changed, output=tmp_path / "output")
    types = partial(
        take_vocabulary,
        model=changed,
        words=words,
        vocabulary="bpe",
        side="source",
        output=tmp_path / "output",
    )
    others = [f"other{number}" for number in range(len(description.target_types))]
    for field, value, take, said in (
        ("splittable", ["the"], types, "its vocabulary has a threshold"),
        ("target_types", others, codes, "the two sides have different codes"),
    ):
        described = description.model_copy(update={field: value})
        save_model(changed, network.state_dict(), described)
        says(refusal(take), said)
    content = imported.read_bytes()
    changed.write_bytes(flipped(content, 8 * len(content) - 4))
    for take in (codes, types):
        says(refusal(take), "damaged: its content does not match its digest")
