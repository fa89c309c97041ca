"""Unknown-word replacement against the faults that users of other toolkits ran into."""

from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from convs2s.config.decoding import DecodingSettings
from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, SPECIAL_TOKENS, UNKNOWN
from convs2s.decoding.search import beam_search
from convs2s.decoding.streams import ChunkTranslator
from convs2s.decoding.translate import LineTranslator
from convs2s.decoding.words import put_back, replace_unknown
from convs2s.model_file import load_model, save_model
from convs2s.models.ensemble import DecoderState, Ensemble
from tests.support.networks import options
from tests.support.refusals import says


class Staring:
    """An ensemble that writes ``<unk>`` and always looks the same way."""

    attends = True

    def __init__(self, attention: list[list[float]]) -> None:
        self.attention = torch.tensor(attention)  # (B, m)

    def positions(self, side: str) -> None:
        """There is no limit."""

    def start(self, source: Indices, *_: object) -> DecoderState:
        return StaringState(source, self.attention)


class StaringState(DecoderState):
    def __init__(self, source: Indices, attention: Tensor) -> None:
        super().__init__([], [], torch.from_numpy(source), "probabilities")
        self.attention = attention

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        predictions = torch.full((*previous.shape, 5), -50.0)  # (B, K, V)
        predictions[:, :, UNKNOWN] = -0.1
        predictions[:, :, END] = -10.0
        rows = self.attention.unsqueeze(1)
        return predictions, rows.expand(-1, previous.shape[1], -1)


@pytest.mark.parametrize(
    ("source", "attention", "expected"),
    [
        # fairseq #1291: every <unk> became <eos>, or the full stop. Here the end symbol has the
        # most attention, and the best word is taken, not the last.
        ([[3, 4, 3, END]], [[0.2, 0.25, 0.15, 0.4]], [1]),
        # Where no word has any attention, one is taken still.
        ([[3, 4, END]], [[0.0, 0.0, 1.0]], [0]),
        # A full stop with the most attention of all words is a word as any (section 4.2).
        ([[3, 4, 3, END]], [[0.1, 0.2, 0.3, 0.4]], [2]),
        # fairseq-lua #77: "attention index out of bound", on the padding of a batch.
        (
            [[3, 4, 5, 6, END], [3, 4, END, PADDING, PADDING]],
            [[0.1, 0.1, 0.1, 0.6, 0.1], [0.1, 0.2, 0.1, 0.1, 0.5]],
            [3, 1],
        ),
    ],
)
def test_the_word_with_the_most_attention_is_looked_at(
    source: list[list[int]], attention: list[list[float]], expected: list[int]
) -> None:
    lengths = {"factor": 0, "offset": 2}
    settings = options(beam=2, minimum_length=2, maximum_length=lengths)
    ensemble = cast(Ensemble, Staring(attention))
    found = beam_search(ensemble, torch.tensor(source), settings)
    for hypotheses, position in zip(found, expected, strict=True):
        assert hypotheses[0].tokens == [UNKNOWN] * 2
        assert hypotheses[0].alignment == [position] * 2


@pytest.fixture
def unknowing(model: Path, tmp_path: Path) -> Path:
    """A model whose outputs are ``<unk>`` 15 times: its 16 positions less the end's."""
    network, description = load_model(model)
    network.output.bias.data[UNKNOWN] += 100.0
    path = tmp_path / "unknowing"
    save_model(path, network.state_dict(), description)
    return path


def translator(path: Path, **settings: Any) -> LineTranslator:
    lengths = {"minimum_length": 15, "maximum_length": {"factor": 0, "offset": 15}}
    chosen = DecodingSettings.model_validate(lengths | settings)
    return LineTranslator([path], chosen, "cpu")


@pytest.mark.parametrize(
    "line",
    [
        "hello",  # fairseq-lua #77: the second word for it looked at position 2 of 1
        "w3 Allianz",  # fairseq #3533: a word in neither vocabulary stayed <unk>
        "<unk> </s> <pad> w1",  # fairseq #3533, #1291: neither reaches the output
        " ".join(f"unheard{number}" for number in range(40)),  # the model reads 15
    ],
)
def test_unknown_words_are_copied_as_they_were_typed(
    unknowing: Path, line: str
) -> None:
    empty, one = translator(unknowing).translate(["", line])
    assert (empty.text, empty.replacements) == ("", [])
    assert one.words_before == ["<unk>"] * 15
    assert not set(SPECIAL_TOKENS) & {*one.source_tokens, *one.words}
    assert set(one.words) <= set(one.source_words[:15])
    for position, row in enumerate(one.replacements):
        word = one.source_words[row["source_position"]]
        assert row == {
            "position": position,
            "source_position": row["source_position"],
            "source_word": word,
            "word": word,
            "by": "copied",
        }
        assert one.words[position] == word
    assert len(one.replacements) == 15


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
    assert after == ["le", "March", "marchez", "may", "mai"]
    copied, looked_up = "copied", "dictionary"
    assert [row["by"] for row in replacements] == [copied, looked_up, copied, looked_up]
    assert [row["position"] for row in replacements] == [1, 2, 3, 4]


def of_pieces(path: Path, codes: str, tmp_path: Path) -> Path:
    """A model with the weights of another one, which reads pieces of words."""
    network, description = load_model(path)
    pieces = description.model_copy(update={"bpe_codes": f"#version: 0.2\n{codes}"})
    save_model(tmp_path / "pieces", network.state_dict(), pieces)
    return tmp_path / "pieces"


def test_places_count_words_where_tokens_are_pieces(
    unknowing: Path, model: Path, tmp_path: Path
) -> None:
    pieces = of_pieces(unknowing, "w 1</w>\n", tmp_path)
    (one,) = translator(pieces).translate(["abw1 cd"])
    assert one.source_tokens == ["a@@", "b@@", "w1", "c@@", "d"]
    assert one.source_words == ["abw1", "cd"]
    assert [row["source_position"] for row in one.replacements[-2:]] == [1, 1]
    assert [row["position"] for row in one.replacements[-2:]] == [
        len(one.words) - 1
    ] * 2
    # The words of a model without BPE may look like pieces.
    settings = DecodingSettings(replace_unknown=False)
    plain = LineTranslator([model], settings, "cpu", pretokenized=True)
    assert next(plain.translate(["w1@@ w2"])).source_words == ["w1@@", "w2"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("w1 w2 \U0001f642", "{} \U0001f642"),
        ("\U0001f642 w1 w2", "\U0001f642 {}"),
        (
            "\u5317\u4eac w1 w2 \U0001f642 \U0001f642",
            "\u5317\u4eac {} \U0001f642 \U0001f642",
        ),
        (
            "\u0440\u0435\u0434 \u043c\u0430\u043d",
            "\u0440\u0435\u0434 \u043c\u0430\u043d",
        ),
        ("w1 w2", "{}"),
    ],
)
def test_words_that_a_model_of_pieces_does_not_hold_are_kept(
    model: Path, tmp_path: Path, line: str, expected: str
) -> None:
    """And the others are translated as without them."""
    pieces = of_pieces(model, "w 1</w>\nw 2</w>\n", tmp_path)
    known, one = translator(pieces).translate(["w1 w2", line])
    assert known.words
    assert one.text == expected.format(known.text)
    assert one.score == (known.score if "{}" in expected else 0.0)
    copied = one.source_words.copy()
    for word in ("w1", "w2"):
        if word in copied:
            copied.remove(word)
    assert [one.words[row["position"]] for row in one.replacements] == [
        word for word in copied for _ in (word if word.isalpha() else "1")
    ]
    (kept,) = translator(pieces, replace_unknown=False).translate([line])
    assert kept.source_tokens == one.source_tokens
    assert kept.replacements == []


@pytest.mark.parametrize(
    ("tokens", "alignment", "held", "expected", "places"),
    [
        ("a b", [0, 1], [0, 2], "a <unk> b", [0, 1, 2]),
        ("b a", [1, 0], [0, 2], "b a <unk>", [2, 0, 1]),
        ("a@@ b c", [0, 1, 1], [0, 2], "a@@ b <unk> c", [0, 2, 1, 2]),
        ("a b a c", [0, 1, 0, 2], [0, 2, 4], "a b <unk> a <unk> c", [0, 2, 3, 0, 1, 4]),
        ("b c", [1, 1], [0, 3], "<unk> <unk> b c", [1, 2, 3, 3]),
        ("", [], [0], "<unk>", [1]),
        ("", [], [], "<unk> <unk>", [0, 1]),
    ],
)
def test_where_they_stand(
    tokens: str,
    alignment: list[int],
    held: list[int],
    expected: str,
    places: list[int],
) -> None:
    length = 2 if len(held) < 2 else held[-1] + 1
    found = put_back(tokens.split(), alignment, held, length)
    assert found == (expected.split(), places)


# ---- words that the model does not know ----

RUSSIAN = "\u0440\u0435\u0434 \u043c\u0430\u043d"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("w1 w2", []),
        (RUSSIAN, RUSSIAN.split()),
        ("w1 \U0001f642 w2 unheard \U0001f642", ["\U0001f642", "unheard"]),
        ("w1 <unk>", ["&lt;", "unk", "&gt;"]),
        ("", []),
    ],
)
def test_the_words_that_a_model_does_not_know(
    model: Path, line: str, expected: list[str]
) -> None:
    settings = DecodingSettings(replace_unknown=False)
    (one,) = LineTranslator([model], settings, "cpu").translate([line], n_best=2)
    assert one.unknown_words == expected
    assert one.as_json().get("unknown_words", []) == expected
    # The bytes of the workflow's files are as before.
    assert "unknown_words" not in one.as_line()


def test_a_word_is_unknown_with_any_of_its_pieces(model: Path, tmp_path: Path) -> None:
    pieces = of_pieces(model, "w 1</w>\nw 2</w>\n", tmp_path)
    (one,) = translator(pieces).translate(["w1 w1x ab w2 ab"])
    tokens = "w1 w@@ 1@@ x a@@ b w2 a@@ b"
    assert one.source_tokens == tokens.split()
    assert one.unknown_words == ["w1x", "ab"]


def test_lines_of_unknown_words_are_named(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = DecodingSettings(replace_unknown=False)
    translate = ChunkTranslator(LineTranslator([model], settings, "cpu"), False, None)
    translate([(1, "w1"), (2, "w2")])
    assert capsys.readouterr().err == ""
    translate([(3, RUSSIAN), (4, "w1"), (5, "unheard")])
    first, second = RUSSIAN.split()
    said = f"lines 3, 5: the model does not know, and so cannot translate: {first} {second} unheard"
    assert said in capsys.readouterr().err
    # Of a long text the first lines and words are named.
    translate([(number, f"new{number}") for number in range(10, 250)])
    said = capsys.readouterr().err
    says(said, "lines 10, 11,", "19 and 230 more:", "new10 new11", "new19 and 230 more")
    assert said.count("\n") == 1
    for number in range(20):
        translate([(number, "unheard")])
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 8
    assert warnings[-1].endswith("unknown_words; further lines are not reported)")
