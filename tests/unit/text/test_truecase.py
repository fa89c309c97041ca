"""Truecasing: equally frequent cases, tables, and models that read truecased text."""

from pathlib import Path
from typing import Any

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import LineTranslator
from convs2s.decoding.words import Splitter
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.model_file import load_model, save_model
from convs2s.text.truecase import (
    Truecaser,
    detruecase,
    learn_truecaser,
    read_truecaser,
    truecase_file,
)


def learned(folder: Path, *lines: str) -> Path:
    write_lines(folder / "text", lines)
    learn_truecaser(text=folder / "text", output=folder / "truecaser.tsv")
    return folder / "truecaser.tsv"


def test_the_order_of_the_text_does_not_decide(tmp_path: Path) -> None:
    lines = "x The the A a", "x the The", "x rot Rot ROT rot"
    tables = [learned(tmp_path, *order).read_bytes() for order in (lines, lines[::-1])]
    assert tables[0] == tables[1]
    rows = (
        "word\tcount",
        "a\t1",
        "A\t1",
        "rot\t2",
        "Rot\t1",
        "ROT\t1",
        "the\t2",
        "The\t2",
    )
    assert tuple(tables[0].decode().splitlines()) == rows
    assert (
        Truecaser(read_truecaser(tmp_path / "truecaser.tsv"))("The A . ROT")
        == "the A . rot"
    )


def test_what_starts_a_sentence_has_no_case_of_its_own(tmp_path: Path) -> None:
    """Neither a line's first word counts, nor one after a full stop, nor after an opening quote."""
    table = learned(tmp_path, "Rot ist es . Gelb auch ? Blau", "&quot; ( Weiß ist rot")
    words = dict(line.split("\t") for line in list(read_lines(table))[1:])
    assert words == {"ist": "2", "es": "1", "auch": "1", "rot": "1"}


def test_the_first_words_of_sentences_alone_change() -> None:
    truecase = Truecaser(["das", "Das", "Haus"])
    assert (
        truecase("Das Haus sah Das . Das Tor : Das")
        == "das Haus sah Das . das Tor : das"
    )
    assert truecase("&quot; Das Haus") == "&quot; das Haus"
    # A case that nobody has seen is the most frequent one's wherever it stands.
    assert truecase("sah DAS HAUS") == "sah das Haus"


def test_capitals_come_back() -> None:
    words = ["das", "haus", ".", "es", "ist", "?", "&quot;", "(", "so", "ist", "es"]
    cased = ["Das", "haus", ".", "Es", "ist", "?", "&quot;", "(", "So", "ist", "es"]
    assert detruecase(words) == cased


def test_a_text_whose_words_have_no_case(tmp_path: Path) -> None:
    table = learned(tmp_path, "1 2 3 .", "")
    truecase_file(text=tmp_path / "text", truecaser=table, output=tmp_path / "out")
    assert list(read_lines(tmp_path / "out")) == ["1 2 3 .", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("type\tcount\nthe\t2\n", r"t:1: expected the columns \['word', 'count'\]"),
        (
            "word\tcount\nthe\t2\nthe 3\n",
            r"t:3: expected the columns \['word', 'count'\]",
        ),
    ],
)
def test_what_is_no_truecaser_is_an_error(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "t").write_text(content)
    with pytest.raises(UserError, match=message):
        read_truecaser(tmp_path / "t")


def test_a_model_reads_truecased_words_and_writes_capitals(
    model: Path, tmp_path: Path
) -> None:
    """Its source words are w0 to w11 and its target words w0x to w11x."""
    loaded, description = load_model(model)
    path = tmp_path / "truecased.safetensors"
    save_model(
        path,
        loaded.state_dict(),
        description.model_copy(update={"truecasers": {"en": ["w1", "W2", "w2"]}}),
    )
    settings = DecodingSettings(minimum_length=3)
    plain, cased = (LineTranslator([one], settings, "cpu") for one in (model, path))
    lower, upper, inner = cased.translate(["w1 w3 W2", "W1 w3 W2", "w1 w2 W1"])
    assert lower.source_tokens == upper.source_tokens == ["w1", "w3", "W2"]
    assert inner.source_tokens == ["w1", "w2", "w1"]
    (expected,) = plain.translate(["w1 w3 W2"])
    assert lower.tokens == expected.tokens
    assert expected.text.startswith("w")
    assert lower.text == expected.text[0].upper() + expected.text[1:]
    assert lower.words == [expected.words[0].capitalize(), *expected.words[1:]]
    assert upper.text == lower.text


def test_given_text_of_either_side_is_truecased(model: Path) -> None:
    _, description = load_model(model)
    words = {"en": ["w1", "W2"], "fr": ["w1x"]}
    description = description.model_copy(update={"truecasers": words})
    assert Splitter(description, "en", "raw")("W1 w2.") == ["w1", "W2", "."]
    assert Splitter(description, "fr", "words")("W1x . W1X w3x") == [
        "w1x",
        ".",
        "w1x",
        "w3x",
    ]
    assert Splitter(description, "fr", "tokens")("W1x w3x") == ["W1x", "w3x"]


@pytest.mark.parametrize(
    "stated",
    [
        {"truecasers": {"en": ["w1"]}},
        {"splittable": ["w1"]},
        {"dictionary": {"w1": "w"}},
    ],
)
def test_models_of_an_ensemble_read_and_write_alike(
    model: Path, tmp_path: Path, stated: dict[str, Any]
) -> None:
    loaded, description = load_model(model)
    path = tmp_path / "other.safetensors"
    save_model(path, loaded.state_dict(), description.model_copy(update=stated))
    with pytest.raises(UserError, match=f"their {next(iter(stated))} differ"):
        LineTranslator([model, path], DecodingSettings(), "cpu")
