"""Truecasing: what is learned of a text, what changes of a line, and models that read such text.

``reference/test_text_truecase.py`` has the words that Moses' scripts change.
"""

from pathlib import Path

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_lines, write_lines
from convs2s.model_file import load_model, save_model
from convs2s.text.truecase import learn_truecaser, truecase_file


def test_what_starts_a_sentence_has_no_case_of_its_own(tmp_path: Path) -> None:
    """Neither a line's first word counts, nor one after a full stop, nor after an opening quote."""
    lines = ["Rot ist es . Gelb auch ? Blau", "&quot; ( Weiß ist rot", "1 2 .", ""]
    write_lines(tmp_path / "text", lines)
    table = tmp_path / "truecaser.tsv"
    learn_truecaser(text=tmp_path / "text", output=table)
    rows = ["word\tcount", "auch\t1", "es\t1", "ist\t2", "rot\t1"]
    assert list(read_lines(table)) == rows
    out = tmp_path / "out"
    truecase_file(text=tmp_path / "text", truecaser=table, output=out)
    assert list(read_lines(out)) == ["rot ist es . Gelb auch ? Blau", *lines[1:]]


def test_a_model_reads_truecased_words_and_writes_capitals(
    model: Path, tmp_path: Path
) -> None:
    """Its source words are w0 to w11 and its target words w0x to w11x."""
    loaded, description = load_model(model)
    path = tmp_path / "truecased.safetensors"
    stated = description.model_copy(update={"truecasers": {"en": ["w1", "W2", "w2"]}})
    save_model(path, loaded.state_dict(), stated)
    settings = DecodingSettings(minimum_length=3)
    cased = LineTranslator([path], settings, "cpu")
    lower, upper, inner = cased.translate(["w1 w3 W2", "W1 w3 W2", "w1 w2 W1"])
    assert lower.source_tokens == upper.source_tokens == ["w1", "w3", "W2"]
    assert inner.source_tokens == ["w1", "w2", "w1"]
    plain = LineTranslator([model], settings, "cpu")
    (expected,) = plain.translate(["w1 w3 W2"])
    assert lower.tokens == expected.tokens
    assert expected.text.startswith("w")
    assert lower.text == upper.text == expected.text.replace("w", "W", 1)
    assert lower.words == [expected.words[0].capitalize(), *expected.words[1:]]
