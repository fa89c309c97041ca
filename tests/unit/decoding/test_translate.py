"""Decoding: incremental equals full, batches do not matter, ensembles, unknown words."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch

from convs2s.config.corpus import PREPARATIONS
from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.decoding.translate import LineTranslator
from convs2s.decoding.words import cut_overlong, replace_unknown
from convs2s.errors import UserError
from convs2s.model_file import load_model, save_model
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network
from convs2s.models.steps import Average
from convs2s.text.preparation import Preparation
from tests.support.networks import (
    assert_incremental_equals_full,
    batch,
    lstm,
    network,
    options,
)


@pytest.mark.parametrize(
    ("kernels", "attention"),
    [
        ((3, 1, 2), (True,) * 3),
        ((5, 5, 1), (False, True, False)),
        ((1, 1, 1), (True, False, True)),
    ],
)
def test_incremental_equals_full(
    kernels: tuple[int, ...], attention: tuple[bool, ...]
) -> None:
    previous = torch.cat([torch.full((3, 1), END), batch(6, 6, 6)[:, :6]], 1)
    model = network(kernels=kernels, attention=attention)
    assert_incremental_equals_full(model, batch(7, 4, 1), previous)


def test_a_sentence_does_not_depend_on_its_batch() -> None:
    ensemble = Ensemble([network()])
    together = beam_search(ensemble, batch(9, 2, 5), options())
    for row, found in zip(batch(9, 2, 5), together, strict=True):
        alone = beam_search(ensemble, row[row != PADDING].unsqueeze(0), options())[0]
        assert [one.tokens for one in found] == [one.tokens for one in alone]
        assert [one.alignment for one in found] == [one.alignment for one in alone]
        assert [one.score for one in found] == pytest.approx(
            [one.score for one in alone]
        )


AVERAGES: list[Average] = ["probabilities", "log_probabilities"]


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("make", [network, lstm])
def test_an_ensemble_of_a_model_with_itself_is_the_model(
    make: Callable[[], Network], average: Average
) -> None:
    source = batch(8, 3)
    single = beam_search(Ensemble([make()]), source, options())
    for copies in (2, 3):
        same = beam_search(
            Ensemble([make() for _ in range(copies)], average), source, options()
        )
        for one, other in zip(
            itertools.chain(*single), itertools.chain(*same), strict=True
        ):
            assert one.tokens == other.tokens
            assert one.alignment == other.alignment
            assert one.score == pytest.approx(other.score, abs=1e-9)


@pytest.mark.parametrize("average", AVERAGES)
def test_what_an_ensemble_averages(average: Average) -> None:
    networks, source = [network(0), network(1), lstm()], batch(5, 8)
    first = torch.full((2, 1), END)
    with torch.no_grad():
        each = torch.stack(
            [Ensemble([one]).start(source, 1).step(first)[0] for one in networks]
        )
        together, attention = Ensemble(networks, average).start(source, 1).step(first)
        attentions = [
            Ensemble([one]).start(source, 1).step(first)[1] for one in networks
        ]
    expected = (
        each.mean(0) if average == "log_probabilities" else each.exp().mean(0).log()
    )
    torch.testing.assert_close(together, expected, atol=1e-9, rtol=0)
    attending = torch.stack([one for one in attentions if one is not None])
    assert len(attending) == 2  # the LSTM has none
    torch.testing.assert_close(attention, attending.mean(0), atol=1e-9, rtol=0)


def test_an_ensemble_has_the_positions_that_each_of_its_networks_has(
    model: Path,
) -> None:
    short, _ = load_model(model)
    together = Ensemble([network(), short, lstm()])
    assert [together.positions(side) for side in ("source", "target")] == [16, 16]
    assert Ensemble([lstm()]).positions("target") is None


def test_a_decoding_says_what_its_ensemble_averages(model: Path, sharp: Path) -> None:
    lines = ["w1 w2 w3", "w4 w5"]
    scores = [
        [
            one.score
            for one in translator(model, sharp, ensemble=average).translate(lines)
        ]
        for average in AVERAGES
    ]
    assert scores[0] != scores[1]


@pytest.mark.parametrize("make", [network, lstm])
def test_score_is_the_likelihood_over_the_length(make: Callable[[], Network]) -> None:
    model = make().eval()
    source = batch(5)
    for alpha in (0.0, 0.6, 1.0):
        best = beam_search(Ensemble([model]), source, options(length_penalty=alpha))[0][
            0
        ]
        previous = torch.tensor([[END, *best.tokens]])
        with torch.no_grad():
            predictions = model(source, previous)[0][0].log_softmax(1)
        target = torch.tensor([*best.tokens, END])
        total = float(predictions.gather(1, target.unsqueeze(1)).sum())
        assert best.score == pytest.approx(total / len(target) ** alpha, abs=1e-5)


# ---- unknown words ----


def test_unknown_words_come_from_the_dictionary_or_the_source() -> None:
    after, replacements = replace_unknown(
        ["le", "<unk>", "voit", "<unk>"],
        [0, 1, 2, 3],
        ["the", "dog", "sees", "Bob"],
        {"dog": "chien"},
    )
    assert after == ["le", "chien", "voit", "Bob"]
    assert [(one["position"], one["by"]) for one in replacements] == [
        (1, "dictionary"),
        (3, "copied"),
    ]


# ---- raw text to text ----


def translator(*models: Path, **changes: Any) -> LineTranslator:
    return LineTranslator(list(models), DecodingSettings.model_validate(changes), "cpu")


def test_lines_come_in_order_whatever_the_batches(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["w1 w2 w3", "", "w4", "w5 w6 w7 w8 w9", "w1"] * 3
    expected = [one.text for one in translator(model).translate(lines)]
    assert expected[1] == ""
    assert [
        one.text for one in translator(model, batch_sentences=1).translate(lines)
    ] == expected
    assert [
        one.text for one in translator(model, batch_tokens=6).translate(lines)
    ] == expected
    monkeypatch.setattr("convs2s.decoding.translate.LINES_PER_CHUNK", 2)
    assert [one.text for one in translator(model).translate(lines)] == expected
    assert [one.line for one in translator(model).translate(lines)] == list(
        range(1, 16)
    )


def test_threads_change_no_translation(model: Path) -> None:
    lines = [
        " ".join(f"w{(one * step) % 9 + 1}" for step in range(one % 7))
        for one in range(90)
    ]
    settings = DecodingSettings(beam=3, batch_sentences=16)
    alone, several = (
        list(LineTranslator([model], settings, "cpu", threads=count).translate(lines))
        for count in (1, 3)
    )
    assert several == alone


def test_each_line_gets_the_translation_of_its_own_text(sharp: Path) -> None:
    lines = ["w5 w6 w7 w8 w9 w3", "w1", "w4 w2 w3"]  # the shortest is not the first
    alone = [next(iter(translator(sharp).translate([line]))).text for line in lines]
    assert len(set(alone)) == len(lines)
    assert [one.text for one in translator(sharp).translate(lines)] == alone


def test_a_batch_holds_no_more_tokens_than_it_may(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def search(
        self: LineTranslator, tokens: Sequence[Sequence[str]], stopped: Event
    ) -> list[list[Hypothesis]]:
        sizes.append([len(sentence) for sentence in tokens])
        return [[Hypothesis([], 0.0, [])] for _ in tokens]

    monkeypatch.setattr(LineTranslator, "search", search)
    lines = ["w1 w2 w3", "", "w4", "w5 w6 w7 w8 w9 w1 w2 w3 w4", "w1", "w1 w2"]
    list(translator(model, batch_sentences=3, batch_tokens=6).translate(lines))
    assert sizes == [[1, 1, 2], [3], [9]]
    sizes.clear()
    list(translator(model, batch_sentences=3, batch_tokens=None).translate(lines))
    assert sizes == [[1, 1, 2], [3, 9]]


def test_text_is_prepared_by_the_recipe_that_the_model_names(
    model: Path, tmp_path: Path
) -> None:
    loaded, description = load_model(model)
    assert description.preparation == "moses_test"
    line = "“It’s low-cost”…"
    tokens = {
        name: Preparation(name, "en").prepare(line).split() for name in PREPARATIONS
    }
    assert tokens["moses_test"] != tokens["moses_train"]
    for name in PREPARATIONS:
        path = tmp_path / f"{name}.safetensors"
        save_model(
            path,
            loaded.state_dict(),
            description.model_copy(update={"preparation": name}),
        )
        assert next(translator(path).translate([line])).source_tokens == tokens[name]


def test_text_cannot_forge_a_special_symbol(model: Path) -> None:
    (translation,) = translator(model).translate(["<unk> </s> w1"])
    assert translation.source_tokens[-1] == "w1"


def test_a_word_model_keeps_words_that_look_like_tokens_of_bpe(model: Path) -> None:
    assert translator(model)._words(["w1@@", "w2"]) == ["w1@@", "w2"]


def test_pieces_of_words_are_joined_and_counted_as_words(
    model: Path, tmp_path: Path
) -> None:
    network, description = load_model(model)
    path = tmp_path / "model.safetensors"
    save_model(
        path,
        network.state_dict(),
        description.model_copy(update={"bpe_codes": "#version: 0.2\n"}),
    )
    of_pieces = translator(path)
    assert of_pieces._words(["a@@", "b", "c"]) == ["ab", "c"]
    assert of_pieces._word_position(["a@@", "b", "<unk>"], 2) == 1
    assert of_pieces._word_position(["x", "y@@", "z", "u"], 3) == 2


def test_an_overlong_line_is_cut_and_said(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (whole,) = translator(model).translate(["w1 " * 15])
    assert capsys.readouterr().err == ""
    _, cut = translator(model).translate(["w1", "w1 " * 100_000])
    assert cut.source_tokens == whole.source_tokens == ["w1"] * 15
    assert cut.text == whole.text
    assert capsys.readouterr().err == (
        "warning: line 2 has 100,000 tokens and is cut, because the model reads only the first 15; "
        f"split it into sentences: {'w1 ' * 20}...\n"
    )


def test_a_model_without_positions_reads_a_bounded_number_of_tokens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cut_overlong(["w"] * 4095, None, 1, "w w") == ["w"] * 4095
    assert capsys.readouterr().err == ""
    assert cut_overlong(["w"] * 500_000, None, 1, "w w") == ["w"] * 4095
    assert "the model reads only the first 4,095;" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a model at all, but text", "not a model: expected a .safetensors"),
        (b"", "not a model"),
    ],
)
def test_a_file_that_is_no_model(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        translator(path)


def test_a_vocabulary_that_does_not_match_its_weights(
    model: Path, tmp_path: Path
) -> None:
    loaded, description = load_model(model)
    description.target_types.append("another")
    path = tmp_path / "model.safetensors"
    save_model(path, loaded.state_dict(), description)
    with pytest.raises(
        UserError, match=r"its vocabularies .* do not match its weights"
    ):
        translator(path)


def test_models_that_do_not_fit_together(model: Path, tmp_path: Path) -> None:
    loaded, description = load_model(model)
    description.languages["target"] = "de"
    path = tmp_path / "model.safetensors"
    save_model(path, loaded.state_dict(), description)
    with pytest.raises(UserError, match=r"cannot form an ensemble .* languages differ"):
        translator(model, path)
