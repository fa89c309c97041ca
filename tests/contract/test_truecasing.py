"""Truecasing: files of text, and models that read such text.

What is learned of a text and what changes of a line is in ``reference/test_text_truecase.py``.
"""

from pathlib import Path

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import LineTranslator
from convs2s.model_file import load_model, save_model
from convs2s.text.truecase import truecase_file


def test_a_text_is_truecased_by_a_table(tmp_path: Path) -> None:
    text, table, output = (tmp_path / name for name in ("text", "table", "output"))
    text.write_text("Rot ist es . Gelb auch ? Blau\n&quot; ( Rot\n\n")
    table.write_text("word\tcount\nauch\t1\nrot\t1\n")
    truecase_file(text=text, truecaser=table, output=output)
    assert output.read_text() == "rot ist es . Gelb auch ? Blau\n&quot; ( rot\n\n"


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
