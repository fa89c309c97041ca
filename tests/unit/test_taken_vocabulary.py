"""A task's codes and vocabularies out of a model file."""

from pathlib import Path

import pytest

from convs2s.data.vocabulary import read_counts, write_counts
from convs2s.errors import UserError
from convs2s.interop.taken_vocabulary import take_codes, take_vocabulary
from convs2s.model_file import load_model, save_model
from convs2s.text.bpe import read_codes
from tests.support.damage import flipped
from tests.support.trained import import_trained


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_trained(tmp_path_factory.mktemp("model"))


def changed(model: Path, output: Path, **changes: object) -> Path:
    """Write a model that says something else of itself."""
    network, description = load_model(model)
    other = description.model_copy(update=changes)
    save_model(output, network.state_dict(), other)
    return output


def words(folder: Path) -> Path:
    table = folder / "words.tsv"
    write_counts(table, [("the", 3), ("thethe", 2)])
    return table


def test_codes_and_types_are_the_models_and_counts_the_texts(
    imported: Path, tmp_path: Path
) -> None:
    _, description = load_model(imported)
    take_codes(model=imported, output=tmp_path / "codes")
    assert read_codes(tmp_path / "codes") == description.bpe_codes
    taken = {"model": imported, "words": words(tmp_path), "vocabulary": "bpe"}
    for side, types in (
        ("source", description.source_types),
        ("target", description.target_types),
    ):
        output = tmp_path / f"{side}.tsv"
        take_vocabulary(**taken, side=side, output=output)  # type: ignore[arg-type]
        counts = dict(read_counts(output))
        assert list(counts) == types
    source = dict(read_counts(tmp_path / "source.tsv"))
    # "thethe" ends with it, unless the codes split it elsewhere.
    assert source["the"] in (3, 5)
    assert 0 in source.values()


def test_a_model_of_words_gives_a_word_task_its_words(
    model: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="reads whole words and has no BPE codes"):
        take_codes(model=model, output=tmp_path / "codes")
    output, table = tmp_path / "en.tsv", tmp_path / "counts.tsv"
    write_counts(table, [("w3", 7), ("unheard", 9)])
    take_vocabulary(
        model=model, words=table, side="source", vocabulary="word", output=output
    )
    counts = dict(read_counts(output))
    assert counts["w3"] == 7
    assert "unheard" not in counts
    with pytest.raises(UserError, match="is of the kind word: write `kind: word`"):
        take_vocabulary(
            model=model, words=table, side="source", vocabulary="bpe", output=output
        )


def test_what_a_model_file_does_not_hold_is_refused(
    imported: Path, tmp_path: Path
) -> None:
    _, description = load_model(imported)
    threshold = changed(imported, tmp_path / "threshold", splittable=["the"])
    with pytest.raises(UserError, match="its vocabulary has a threshold"):
        take_vocabulary(
            model=threshold,
            words=words(tmp_path),
            side="source",
            vocabulary="bpe",
            output=tmp_path / "en.tsv",
        )
    others = [f"other{number}" for number in range(len(description.target_types))]
    separate = changed(imported, tmp_path / "separate", target_types=others)
    with pytest.raises(UserError, match="the two sides have different codes"):
        take_codes(model=separate, output=tmp_path / "codes")


def test_a_damaged_model_gives_neither_codes_nor_types(
    imported: Path, tmp_path: Path
) -> None:
    content = imported.read_bytes()
    damaged = tmp_path / "damaged"
    damaged.write_bytes(flipped(content, 8 * len(content) - 4))
    taken = {
        "model": damaged,
        "words": words(tmp_path),
        "vocabulary": "bpe",
        "side": "source",
    }
    with pytest.raises(
        UserError, match="damaged: its content does not match its digest"
    ):
        take_codes(model=damaged, output=tmp_path / "codes")
    with pytest.raises(
        UserError, match="damaged: its content does not match its digest"
    ):
        take_vocabulary(**taken, output=tmp_path / "en.tsv")  # type: ignore[arg-type]
