"""Words that a model does not know or has in another case.

Their replacement is held against the faults that users of other toolkits ran into.

That the word with the most attention is looked at, and neither ``</s>`` nor padding, is tested
against fairseq's attention in ``reference/test_search.py``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import SPECIAL_TOKENS, UNKNOWN
from convs2s.decoding.streams import ChunkTranslator
from convs2s.decoding.translate import LineTranslator
from convs2s.decoding.words import put_back, replace_unknown
from convs2s.model_file import load_model, save_model
from tests.support.refusals import rows, says


@pytest.fixture
def unknowing(model: Path, tmp_path: Path) -> Path:
    """A model whose outputs are ``<unk>`` 15 times: its 16 positions less the end's."""
    network, description = load_model(model)
    network.output.bias.data[UNKNOWN] += 100.0
    path = tmp_path / "unknowing"
    save_model(path, network.state_dict(), description)
    return path


CODES = "#version: 0.2\nw 1</w>\nw 2</w>\n"


def changed(path: Path, tmp_path: Path, **stated: Any) -> Path:
    """A model with the weights of another one, which reads pieces of words or what is stated."""
    network, description = load_model(path)
    described = description.model_copy(update=stated or {"bpe_codes": CODES})
    save_model(tmp_path / "changed", network.state_dict(), described)
    return tmp_path / "changed"


def translator(path: Path, **settings: Any) -> LineTranslator:
    lengths = {"minimum_length": 15, "maximum_length": {"factor": 0, "offset": 15}}
    chosen = DecodingSettings.model_validate(lengths | settings)
    return LineTranslator([path], chosen, "cpu")


def test_unknown_words_are_copied_as_they_were_typed(unknowing: Path) -> None:
    for line in (
        "hello",  # fairseq-lua #77: the second word for it looked at position 2 of 1
        "w3 Allianz",  # fairseq #3533: a word in neither vocabulary stayed <unk>
        "<unk> </s> <pad> w1",  # fairseq #3533, #1291: neither reaches the output
        "unheard " * 40,  # the model reads 15
    ):
        empty, one = translator(unknowing).translate(["", line])
        assert (empty.text, empty.replacements) == ("", [])
        assert one.words_before == ["<unk>"] * 15
        assert not set(SPECIAL_TOKENS) & {*one.source_tokens, *one.words}
        assert [row["position"] for row in one.replacements] == list(range(15))
        for row, word in zip(one.replacements, one.words, strict=True):
            assert row["source_position"] < 15
            assert one.source_words[row["source_position"]] == row["source_word"]
            assert (row["source_word"], row["by"]) == (word, "copied")


def test_a_dictionary_is_asked_first_and_replacement_can_be_left_out(
    unknowing: Path,
) -> None:
    """fairseq #3533: without an alignment file its loader broke; #832: what is not asked for."""
    known = translator(unknowing)
    assert known.description.dictionary == {}
    known.description.dictionary["w1"] = "mot"
    assert set(next(known.translate(["w1"])).words) == {"mot"}
    (one,) = translator(unknowing, replace_unknown=False).translate(["w1"])
    assert set(one.words) == {"<unk>"}
    assert one.replacements == []


def test_a_word_is_looked_up_as_it_is_written() -> None:
    dictionary = {"march": "marchez", "May": "mai"}
    tokens = ["le", "<unk>", "<unk>", "<unk>", "<unk>"]
    source = ["March", "march", "may", "May"]
    after, replacements = replace_unknown(tokens, [3, 0, 1, 2, 3], source, dictionary)
    assert " ".join(after) == "le March marchez may mai"
    found = [f"{row['position']} {row['by']} {row['word']}" for row in replacements]
    expected = "1 copied March, 2 dictionary marchez, 3 copied may, 4 dictionary mai"
    assert ", ".join(found) == expected


def test_places_count_words_where_tokens_are_pieces(
    unknowing: Path, model: Path, tmp_path: Path
) -> None:
    (one,) = translator(changed(unknowing, tmp_path)).translate(["abw1 cd"])
    assert " ".join(one.source_tokens) == "a@@ b@@ w1 c@@ d"
    assert one.source_words == ["abw1", "cd"]
    last = len(one.words) - 1
    for row in one.replacements[-2:]:
        assert (row["source_position"], row["position"]) == (1, last)
    # The words of a model without BPE may look like pieces.
    for path, words in ((model, ["w1", "@@"]), (tmp_path / "changed", ["w1"])):
        given = LineTranslator([path], DecodingSettings(), "cpu", pretokenized=True)
        assert next(given.translate(["w1 @@"])).source_words == words


KEPT = r"""
w1 w2 \U0001f642 => {} \U0001f642
\u5317\u4eac w1 w2 \U0001f642 \U0001f642 => \u5317\u4eac {} \U0001f642 \U0001f642
\u0440\u0435\u0434 \u043c\u0430\u043d => \u0440\u0435\u0434 \u043c\u0430\u043d
w1 w2 => {}
"""


def test_words_that_a_model_of_pieces_does_not_hold_are_kept(
    model: Path, tmp_path: Path
) -> None:
    """And the others are translated as without them."""
    pieces = changed(model, tmp_path)
    for line, expected in rows(KEPT):
        known, one = translator(pieces).translate(["w1 w2", line])
        assert known.words
        assert one.text == expected.format(known.text)
        assert one.score == (known.score if "{}" in expected else 0.0)
        copied = [one.words[row["position"]] for row in one.replacements]
        kept = [word for word in one.source_words if word not in ("w1", "w2")]
        # A word has a replacement for each of its letters, which are pieces.
        assert copied == [word for word in kept for _ in word]
        (left,) = translator(pieces, replace_unknown=False).translate([line])
        assert left.source_tokens == one.source_tokens
        assert left.replacements == []


PLACES = """
a b => [0, 1] => [0, 2] => a <unk> b => [0, 1, 2]
b a => [1, 0] => [0, 2] => b a <unk> => [2, 0, 1]
a@@ b c => [0, 1, 1] => [0, 2] => a@@ b <unk> c => [0, 2, 1, 2]
a b a c => [0, 1, 0, 2] => [0, 2, 4] => a b <unk> a <unk> c => [0, 2, 3, 0, 1, 4]
b c => [1, 1] => [0, 3] => <unk> <unk> b c => [1, 2, 3, 3]
=> [] => [] => <unk> <unk> => [0, 1]
"""


def test_where_they_stand() -> None:
    for tokens, alignment, held, expected, places in rows(PLACES):
        read = json.loads(held)
        length = read[-1] + 1 if read else 2
        found = put_back(tokens.split(), json.loads(alignment), read, length)
        assert found == (expected.split(), json.loads(places))


# ---- words that the model does not know ----

UNKNOWN_WORDS = r"""
words => w1 w2 =>
words => \u0440\u0435\u0434 \u043c\u0430\u043d => \u0440\u0435\u0434 \u043c\u0430\u043d
words => w1 \U0001f642 w2 unheard \U0001f642 => \U0001f642 unheard
words => w1 <unk> => &lt; unk &gt;
pieces => w1 w1x ab w2 ab => w1x ab
"""


def test_the_words_that_a_model_does_not_know(model: Path, tmp_path: Path) -> None:
    """A word of pieces is unknown with any of them."""
    pieces = changed(model, tmp_path)
    for kind, line, expected in rows(UNKNOWN_WORDS):
        path = pieces if kind == "pieces" else model
        (one,) = translator(path, replace_unknown=False).translate([line])
        assert one.as_json().get("unknown_words", []) == expected.split()
        # The bytes of the workflow's files are as before.
        assert "unknown_words" not in one.as_line()


def test_lines_of_unknown_words_are_named(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unreplaced = translator(model, replace_unknown=False)
    translate = ChunkTranslator(unreplaced, False, None)
    translate([(3, "\u0440\u0435\u0434"), (4, "w1"), (5, "unheard")])
    said = capsys.readouterr().err
    says(said, "lines 3, 5:", "cannot translate: \u0440\u0435\u0434 unheard")
    # Of a long text the first lines and words are named, and the first warnings are printed.
    translate([(number, f"new{number}") for number in range(10, 250)])
    says(capsys.readouterr().err, "19 and 230 more:", "new19 and 230 more")
    for number in range(20):
        translate([(number, "unheard")])
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 8
    assert warnings[-1].endswith("unknown_words; further lines are not reported)")


# ---- words that are truecased ----


def test_a_model_reads_truecased_words_and_writes_capitals(
    model: Path, tmp_path: Path
) -> None:
    """Its source words are w0 to w11 and its target words w0x to w11x."""
    path = changed(model, tmp_path, truecasers={"en": ["w1", "W2", "w2"]})
    lines = ["w1 w3 W2", "W1 w3 W2", "w1 w2 W1"]
    lower, upper, inner = translator(path).translate(lines)
    assert lower.source_tokens == upper.source_tokens == ["w1", "w3", "W2"]
    assert inner.source_tokens == ["w1", "w2", "w1"]
    (expected,) = translator(model).translate(lines[:1])
    assert lower.tokens == expected.tokens
    assert expected.text.startswith("w")
    assert lower.text == upper.text == expected.text.replace("w", "W", 1)
    assert lower.words == [expected.words[0].capitalize(), *expected.words[1:]]
