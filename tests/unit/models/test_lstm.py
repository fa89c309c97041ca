"""The LSTM network: its size, reversal, padding, and decoding with it, alone and in ensembles."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from convs2s.config.architecture import LstmArchitecture
from convs2s.config.decoding import DecodingSettings
from convs2s.config.model import ModelSettings
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.inspection import attention_of
from convs2s.decoding.search import beam_search
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.model_file import load_model, save_model
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble
from convs2s.models.lstm import InferenceLstm, Lstm, reverse_tokens
from convs2s.models.steps import Precision
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from tests.support import tiny
from tests.support.interrupted import train_until
from tests.support.networks import TYPES, batch, lstm, network, options


def previous(length: int, rows: int) -> torch.Tensor:
    """What the decoder reads: ``</s>`` and tokens."""
    return torch.cat(
        [torch.full((rows, 1), END), batch(*[length] * rows)[:, :length]], 1
    )


# ---- the network ----


def test_the_papers_sizes() -> None:
    """384M parameters, 64M of them in the recurrent layers (section 3.4)."""
    with torch.device("meta"):
        model = build_network(LstmArchitecture(kind="lstm"), 160_000, 80_000)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    recurrent = {name: size for name, size in sizes.items() if ".layers." in name}
    biases = sum(size for name, size in sizes.items() if ".bias" in name)
    # The paper counts weights: torch's layers have two biases each, and the softmax layer has one.
    assert sum(sizes.values()) == 384_144_000
    assert biases == 8 * 2 * 4_000 + 80_000
    assert sum(sizes.values()) - biases == 384_000_000
    assert sum(recurrent.values()) == 64_064_000


def test_every_parameter_is_drawn_uniformly() -> None:
    torch.manual_seed(1)
    architecture = LstmArchitecture(
        kind="lstm", layers=2, cells=64, embedding=32, dropout=0.0, initialization=0.08
    )
    model = Lstm(architecture, 50, 60)
    for name, parameter in model.named_parameters():
        values = parameter.detach().flatten()
        assert 0.07 < float(values.abs().max()) <= 0.08, name
        assert float(values.std()) == pytest.approx(0.08 / 3**0.5, rel=0.15), name


def test_tokens_are_reversed_and_the_end_symbol_stays_last() -> None:
    rows = torch.tensor(
        [[3, 4, 5, END], [6, END, PADDING, PADDING], [END, PADDING, PADDING, PADDING]]
    )
    assert reverse_tokens(rows).tolist() == [
        [5, 4, 3, END],
        [6, END, PADDING, PADDING],
        [END, PADDING, PADDING, PADDING],
    ]


def test_features_are_what_the_output_layer_maps() -> None:
    source, tokens = batch(6, 3), previous(4, 2)
    for model in (lstm().eval(), network().eval()):
        layer = model.output
        logits = model.features(source, tokens) @ layer.weight().T + layer.bias
        torch.testing.assert_close(model(source, tokens)[0], logits, atol=1e-12, rtol=0)


def test_dropout_follows_the_seed() -> None:
    model, source, tokens = lstm().train(), batch(6, 3), previous(4, 2)
    torch.manual_seed(5)
    first, second = (model(source, tokens)[0] for _ in range(2))
    torch.manual_seed(5)
    torch.testing.assert_close(model(source, tokens)[0], first, atol=0, rtol=0)
    assert not torch.allclose(first, second)


# ---- decoding ----


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_encoded_sentence_is_the_same_to_the_bit_in_every_batch(
    precision: Precision,
) -> None:
    """Rows of one length alone, and rows that outlast all others, take other kernels of torch."""
    for_decoding = InferenceLstm(lstm().eval().float(), precision)
    lengths = [3, 9, 9, 17, 30]
    source = batch(*lengths)

    def states(chosen: list[int]) -> list[Tensor]:
        rows = source[chosen, : max(lengths[one] for one in chosen) + 1]
        return [one for state in for_decoding.start(rows, 1)._states for one in state]

    expected = states([0, 1, 2, 3, 4])
    for chosen in ([0], [4], [1, 2], [3, 4], [0, 4], [2, 0, 3]):
        for one, whole in zip(states(chosen), expected, strict=True):
            assert torch.equal(one, whole[chosen])


@pytest.mark.parametrize("finished", ["replace", "leave"])
def test_a_sentence_does_not_depend_on_its_batch(finished: str) -> None:
    ensemble = Ensemble([lstm()])
    chosen = options(finished=finished, length_penalty=0.0)
    together = beam_search(ensemble, batch(9, 2, 5), chosen)
    for row, found in zip(batch(9, 2, 5), together, strict=True):
        alone = beam_search(ensemble, row[row != PADDING].unsqueeze(0), chosen)[0]
        assert [one.tokens for one in found] == [one.tokens for one in alone]
        assert [one.score for one in found] == pytest.approx(
            [one.score for one in alone]
        )
        assert all(one.alignment is None for one in found)


def test_a_mixed_ensemble_has_the_attention_of_those_that_attend() -> None:
    convs2s, recurrent = network(), lstm()
    source, tokens = batch(5, 8), previous(1, 2)[:, :1]
    with torch.no_grad():
        together, attention = (
            Ensemble([recurrent, convs2s]).start(source, 1).step(tokens)
        )
        one, _ = Ensemble([recurrent]).start(source, 1).step(tokens)
        other, alone = Ensemble([convs2s]).start(source, 1).step(tokens)
    assert attention is not None
    assert alone is not None
    torch.testing.assert_close(attention, alone, atol=0, rtol=0)
    torch.testing.assert_close(
        together.exp(), (one.exp() + other.exp()) / 2, atol=1e-12, rtol=0
    )
    found = beam_search(Ensemble([recurrent, convs2s]), source, options())
    for length, hypotheses in zip((5, 8), found, strict=True):
        for hypothesis in hypotheses:
            assert hypothesis.alignment is not None
            assert all(place < length for place in hypothesis.alignment)


# ---- training ----


SMALL = {"kind": "lstm", "layers": 2, "cells": 8, "embedding": 8}


def job(
    task: Path, output: Path, changes: Mapping[str, object], **training: Any
) -> TrainingJob:
    """A training by the LSTM system's recipe in small (section 3.4)."""
    recipe = {
        "optimizer": "sgd",
        "normalize": "sentences",
        "learning_rate": 0.7,
        "clip": 5.0,
        "schedule": {"kind": "step", "hold": 1, "every": 0.5, "divide_by": 2},
        "maximum_epochs": 2.5,
        "batch": {"sentences": 16},
    }
    given = {"architecture": {**SMALL, **changes}, "training": {**recipe, **training}}
    settings = ModelSettings.model_validate({"description": "small", **given})
    return tiny.job(task, output, settings)


def test_training_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    task = tiny.prepare(tmp_path / "task")
    whole, parts = (
        tmp_path / name / "model.safetensors" for name in ("whole", "parts")
    )
    train(job(task, whole, {"dropout": 0.2}))
    train_until(job(task, parts, {"dropout": 0.2}), epoch=2)
    train(job(task, parts, {"dropout": 0.2}))
    assert parts.read_bytes() == whole.read_bytes()
    rows = [json.loads(line) for line in (parts.parent / "history.jsonl").open()]
    assert [row["updates"] for row in rows[:-1]] == [10, 20, 25]
    assert rows[1]["train_loss"] < rows[0]["train_loss"]


def test_bf16_trains(tmp_path: Path) -> None:
    task, weights = (
        tiny.prepare(tmp_path / "task"),
        dict[str, dict[str, torch.Tensor]](),
    )
    for precision in ("fp32", "bf16"):
        path = tmp_path / precision / "model.safetensors"
        path.parent.mkdir()
        train(job(task, path, {}, precision=precision, maximum_epochs=1))
        weights[precision] = load_model(path)[0].state_dict()
    changes = {
        name: (weights["bf16"][name] - weight).abs().max().item()
        for name, weight in weights["fp32"].items()
    }
    assert all(weight.dtype == torch.float32 for weight in weights["bf16"].values())
    assert 0 < max(changes.values()) < 0.1


# ---- the model file ----


def translator(*models: Path, replace_unknown: bool = False) -> LineTranslator:
    settings = DecodingSettings(beam=2, replace_unknown=replace_unknown)
    return LineTranslator(models, settings, "cpu")


def test_a_model_file_comes_back(recurrent: Path, tmp_path: Path) -> None:
    loaded, description = load_model(recurrent)
    assert isinstance(loaded, Lstm)
    again = tmp_path / "again.safetensors"
    save_model(again, loaded.state_dict(), description)
    assert again.read_bytes() == recurrent.read_bytes()
    (translation,) = translator(recurrent).translate([" ".join(["w1"] * 40)])
    assert translation.replacements == []
    assert len(translation.source_tokens) == 40  # no position runs out


def test_replacement_without_attention_is_refused(recurrent: Path) -> None:
    with pytest.raises(
        UserError, match=r"has no attention, .* `replace_unknown: false`"
    ):
        translator(recurrent, replace_unknown=True)


def test_a_mixed_ensemble_replaces_unknown_words(recurrent: Path, model: Path) -> None:
    (translation,) = translator(recurrent, model, replace_unknown=True).translate(
        ["w1 w2"]
    )
    assert "<unk>" not in translation.words


def test_there_is_no_attention_to_plot(recurrent: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no attention to plot"):
        attention_of(recurrent, tmp_path / "none.jsonl", 1)


def test_bf16_is_near() -> None:
    model = lstm().float()
    source = batch(6, 3)
    with torch.inference_mode():
        near, exact = (
            Ensemble([model], precision=precision)
            .start(source, 1)
            .step(torch.full((2, 1), END))[0]
            for precision in ("bf16", "fp32")
        )
    assert near.shape == (2, 1, TYPES)
    torch.testing.assert_close(near.exp(), exact.exp(), atol=0.05, rtol=0)
