"""Unknown-word replacement against the faults that users of other toolkits ran into."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from convs2s.config.decoding import DecodingSettings
from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, SPECIAL_TOKENS, UNKNOWN
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.decoding.test_sets import decode_test_set
from convs2s.decoding.translate import LineTranslator
from convs2s.decoding.words import replace_unknown
from convs2s.files.text import read_lines, write_lines
from convs2s.model_file import load_model, save_model
from convs2s.models.ensemble import DecoderState, Ensemble
from convs2s.scoring.translations import read_translations
from convs2s.text.align import align_words
from convs2s.text.dictionary import build_dictionary, read_dictionary
from tests.support.networks import options

TYPES = 5


class Staring:
    """An ensemble that writes ``<unk>`` and always looks the same way."""

    attends = True

    def __init__(self, attention: list[list[float]]) -> None:
        self.attention = torch.tensor(attention)  # (B, m)

    def positions(self, side: str) -> None:
        return None

    def start_search(
        self, source: Indices, hypotheses: int, selected: None
    ) -> DecoderState:
        assert source.shape == self.attention.shape
        return StaringState(torch.from_numpy(source), self.attention)


class StaringState(DecoderState):
    def __init__(self, source: Tensor, attention: Tensor) -> None:
        super().__init__([], [], source, "probabilities")
        self.attention = attention

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        predictions = torch.full((*previous.shape, TYPES), -50.0)  # (B, K, V)
        predictions[:, :, UNKNOWN], predictions[:, :, END] = -0.1, -10.0
        return predictions, self.attention.unsqueeze(1).expand(
            -1, previous.shape[1], -1
        )

    def keep(self, sentences: Indices) -> None:
        super().keep(sentences)
        self.attention = self.attention[torch.from_numpy(sentences)]


def looked_at(
    source: list[list[int]], attention: list[list[float]], words: int
) -> list[list[int]]:
    """Return the alignment of each sentence's best output, which is ``words`` unknown words."""
    lengths = {"factor": 0, "offset": words}
    settings = options(beam=2, minimum_length=words, maximum_length=lengths)
    ensemble = cast(Ensemble, Staring(attention))
    found = beam_search(ensemble, torch.tensor(source), settings)
    best: list[Hypothesis] = [hypotheses[0] for hypotheses in found]
    assert all(one.tokens == [UNKNOWN] * words for one in best)
    return [one.alignment or [] for one in best]


def unknowing(model: Path, **settings: Any) -> LineTranslator:
    """Return a translator whose outputs are ``<unk>`` 15 times: its 16 positions less the end's."""
    network, description = load_model(model)
    network.output.bias.data[UNKNOWN] += 100.0
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_model(path, network.state_dict(), description)
        chosen = DecodingSettings.model_validate({"minimum_length": 15} | settings)
        return LineTranslator([path], chosen, "cpu")


# Attention on the final full stop or </s>


def test_attention_on_the_end_symbol_takes_the_best_word_not_the_last() -> None:
    """facebookresearch/fairseq #1291: every ``<unk>`` became ``<eos>``, or the full stop."""
    #                  France  wins   .    </s>
    (alignment,) = looked_at([[3, 4, 3, END]], [[0.2, 0.25, 0.15, 0.4]], words=2)
    assert alignment == [1, 1]


def test_attention_on_the_end_symbol_alone_still_takes_a_word() -> None:
    """facebookresearch/fairseq #1291: where no word has any attention, one is taken still."""
    (alignment,) = looked_at([[3, 4, END]], [[0.0, 0.0, 1.0]], words=1)
    assert alignment == [0]


def test_a_full_stop_with_the_most_attention_of_all_words_is_a_word_as_any() -> None:
    """facebookresearch/fairseq #1291: the paper's rule has no exception, so that it stands for it.

    Section 4.2 replaces by "the source word with the maximum attention score"; what the thread saw
    was the end token's attention ascribed to the full stop.
    """
    (alignment,) = looked_at([[3, 4, 3, END]], [[0.1, 0.2, 0.3, 0.4]], words=1)
    assert alignment == [2]
    after, (one,) = replace_unknown(
        ["<unk>"], alignment, ["France", "wins", "."], {".": "。"}
    )
    assert (after, one["source_word"], one["by"]) == (["。"], ".", "dictionary")


# Index past the source


def test_attention_on_the_padding_of_a_batch_is_passed_over() -> None:
    """facebookresearch/fairseq-lua #77: "attention index out of bound"."""
    source = [[3, 4, 5, 6, END], [3, 4, END, PADDING, PADDING]]
    attention = [[0.1, 0.1, 0.1, 0.6, 0.1], [0.1, 0.2, 0.1, 0.1, 0.5]]
    assert looked_at(source, attention, words=3) == [[3, 3, 3], [1, 1, 1]]


def test_outputs_longer_than_their_source_look_at_its_words(model: Path) -> None:
    """facebookresearch/fairseq-lua #77: the second word for ``hello`` looked at position 2 of 1."""
    lines = ["hello", "w1 w2 w3 w4 w5 w6", "w3 hello"]
    for line, one in zip(lines, unknowing(model).translate(lines), strict=True):
        assert one.words_before == ["<unk>"] * 15
        assert set(one.words) <= set(line.split())
        positions = [item["source_position"] for item in one.replacements]
        assert one.words == [line.split()[position] for position in positions]


def test_a_line_longer_than_the_model_has_positions(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """facebookresearch/fairseq-lua #77: what stands past the positions is in bounds as well."""
    words = [f"unheard{number}" for number in range(40)]
    (one,) = unknowing(model).translate([" ".join(words)])
    assert len(one.replacements) == 15
    assert set(one.words) <= set(words[:15])
    said = "line 1 has 40 tokens and is cut, because the model reads only the first 15"
    assert said in capsys.readouterr().err


# Special tokens are never copied


def test_a_word_unknown_on_both_sides_is_copied_as_it_was_typed(model: Path) -> None:
    """facebookresearch/fairseq #3533: a word in neither vocabulary stayed ``<unk>``."""
    (one,) = unknowing(model).translate(["Allianz"])
    assert one.source_tokens == ["Allianz"]
    assert set(one.words) == {"Allianz"}
    assert "<unk>" not in one.text
    assert {item["by"] for item in one.replacements} == {"copied"}


def test_the_text_of_a_special_symbol_is_text(model: Path) -> None:
    """facebookresearch/fairseq #3533, #1291: neither ``<unk>`` nor ``<eos>`` reaches the output."""
    for line in ("<unk>", "</s>", "<pad>", "<unk> </s> <pad> w1"):
        (one,) = unknowing(model).translate([line])
        assert one.words_before == ["<unk>"] * 15
        assert not set(SPECIAL_TOKENS) & {*one.source_tokens, *one.words}


def test_an_empty_line_has_nothing_to_replace(model: Path) -> None:
    """facebookresearch/fairseq-lua #77: there is no word to look at, and no index past none."""
    assert [one.text for one in unknowing(model).translate(["", " ", "w1"])][:2] == [
        "",
        "",
    ]


# How it is asked for


def test_without_a_dictionary_words_are_copied(model: Path) -> None:
    """facebookresearch/fairseq #3533: without an alignment file its loader broke."""
    translator = unknowing(model)
    assert translator.description.dictionary == {}
    assert set(next(translator.translate(["w1"])).words) == {"w1"}
    translator.description.dictionary["w1"] = "mot"
    assert set(next(translator.translate(["w1"])).words) == {"mot"}


def test_a_word_is_looked_up_as_it_is_written() -> None:
    dictionary = {"march": "marchez", "May": "mai"}
    after, replacements = replace_unknown(
        ["<unk>"] * 4, [0, 1, 2, 3], ["March", "march", "may", "May"], dictionary
    )
    assert after == ["March", "marchez", "may", "mai"]
    assert [item["by"] for item in replacements] == [
        "copied",
        "dictionary",
        "copied",
        "dictionary",
    ]


def test_test_sets_and_single_lines_are_replaced_alike(
    model: Path, tmp_path: Path
) -> None:
    """facebookresearch/fairseq #832: replacement was refused for a test set, not for a typed line.

    Both read raw text here and replace unless they are told not to.
    """
    assert DecodingSettings().replace_unknown
    lines = ["w1 Allianz", "w2 w3"]
    write_lines(tmp_path / "test.en", lines)
    outputs = tmp_path / "test.jsonl", tmp_path / "test.txt"
    decode_test_set(
        LineTranslator([model], DecodingSettings(), "cpu"),
        source=tmp_path / "test.en",
        lines=outputs[0],
        text=outputs[1],
    )
    typed = list(LineTranslator([model], DecodingSettings(), "cpu").translate(lines))
    assert list(read_lines(outputs[1])) == [one.text for one in typed]
    assert [one.words for one in read_translations(outputs[0])] == [
        one.words for one in typed
    ]


def test_replacement_can_be_left_out(model: Path) -> None:
    """facebookresearch/fairseq #832: what is not asked for is not done."""
    (one,) = unknowing(model, replace_unknown=False).translate(["w1"])
    assert (set(one.words), one.replacements) == ({"<unk>"}, [])


# ||| in the corpus


def test_bars_in_the_corpus_harm_no_entry_of_the_dictionary(tmp_path: Path) -> None:
    """facebookresearch/fairseq-lua #77: ``|||``, its aligner's separator, broke the alignment."""
    pairs = [
        ("creeper rap ||| itunes boom", "rap rampant ||| itunes boum"),
        ("the ||| ||| house", "la ||| ||| maison"),
        ("|||", "|||"),
        ("boom", "boum"),
        ("house", "maison"),
    ] * 20
    source, target = tmp_path / "train.en", tmp_path / "train.fr"
    write_lines(source, (pair[0] for pair in pairs))
    write_lines(target, (pair[1] for pair in pairs))
    links, dictionary = tmp_path / "links", tmp_path / "dictionary.tsv"
    assert align_words(source=source, target=target, links=links, pairs=None) == len(
        pairs
    )
    build_dictionary(
        source=source,
        target=target,
        links=links,
        dictionary=dictionary,
        candidates=tmp_path / "candidates.tsv",
    )
    after, _ = replace_unknown(
        ["<unk>", "<unk>", "<unk>"],
        [0, 1, 2],
        ["|||", "boom", "house"],
        read_dictionary(dictionary),
    )
    assert after == ["|||", "boum", "maison"]
