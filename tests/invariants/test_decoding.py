"""A sentence's translation is the same in any batch, on any threads, step by step or at once."""

import random
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.config.architecture import parse_architecture
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import export_extensions
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.rescoring import log_probabilities
from convs2s.decoding.search import beam_search
from convs2s.decoding.translate import LineTranslator, Translation
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble, for_inference
from convs2s.models.network import Network
from convs2s.models.steps import Average, Precision
from tests.support import tiny
from tests.support.networks import (
    TYPES,
    assert_incremental_equals_full,
    batch,
    lstm,
    network,
    options,
    rnn,
)

READ = batch(6, 6, 6).roll(1, 1)
"""What the decoder reads: ``</s>`` and tokens."""
RECURRENT = [lstm(), rnn(), rnn("lstm", "luong", layers=2)]

# ---- what else is translated ----


@pytest.mark.parametrize(
    ("precision", "beam", "tolerance"),
    [("fp32", 2, 1e-5), ("bf16", 2, 0), ("int8", 2, 0), ("fp32", 48, 1e-5)],
)
def test_nothing_beside_a_line_changes_its_translation(
    sharp: Path,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    beam: int,
    tolerance: float,
) -> None:
    """Also with a beam that is wider than the vocabulary."""
    generator = random.Random(5)
    lengths = [*range(0, 40, 2)] * 2
    lines = [" ".join(generator.choices(tiny.WORDS, k=length)) for length in lengths]
    fixed = {
        "beam": beam,
        "maximum_length": {"factor": 0.2, "offset": 2},
        "precision": precision,
    }

    def translated(
        order: Sequence[int], threads: int = 1, **changes: int
    ) -> list[Translation]:
        settings = DecodingSettings.model_validate(fixed | changes)
        translator = LineTranslator([sharp], settings, "cpu", threads=threads)
        found = list(translator.translate(lines[place] for place in order))
        assert [one.line for one in found] == list(range(1, len(lines) + 1))
        return [one for _, one in sorted(zip(order, found, strict=True))]

    places = range(len(lines))
    shuffled = generator.sample(places, len(places))
    expected = translated(places, batch_sentences=64)
    assert expected[0].text == ""
    assert len({one.text for one in expected}) > 15
    compared = [
        translated(shuffled, batch_sentences=1),
        translated(shuffled, batch_sentences=7),
        translated(places, batch_tokens=90),
        translated(places, batch_sentences=9, threads=3),
    ]
    monkeypatch.setattr("convs2s.decoding.translate.LINES_PER_CHUNK", 9)
    compared.append(translated(shuffled))
    for found in compared:
        for one, other in zip(found, expected, strict=True):
            assert (one.text, one.alignment) == (other.text, other.alignment)
            assert abs(one.score - other.score) <= tolerance


@pytest.mark.parametrize("hypotheses", [1, 4])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("model", RECURRENT)
def test_a_recurrent_networks_sentence_is_the_same_to_the_bit_in_every_batch(
    model: Network, precision: Precision, hypotheses: int
) -> None:
    """Rows of one length alone, and rows that outlast all others, take other kernels of torch."""
    decoding = for_inference(deepcopy(model).float().eval(), precision)
    lengths = [3, 9, 9, 17, 30]
    source = batch(*lengths)

    @torch.inference_mode()
    def features(chosen: list[int]) -> torch.Tensor:
        rows = source[chosen, : max(lengths[one] for one in chosen) + 1]
        state = decoding.start(rows, hypotheses)
        state.step(torch.full((len(chosen), hypotheses), END))
        return state.step(torch.full((len(chosen), hypotheses), 4))[0]

    together = features([0, 1, 2, 3, 4])
    for chosen in ([0], [4], [1, 2], [3, 4], [0, 4], [2, 0, 3]):
        assert torch.equal(features(chosen), together[chosen])


# ---- step by step or at once ----


@pytest.mark.parametrize("finished", ["replace", "leave"])
@pytest.mark.parametrize("model", [network(), *RECURRENT])
def test_a_score_is_the_likelihood_by_a_full_pass(
    model: Network, finished: str
) -> None:
    """That of a search, and that of its output as a given translation."""
    ensemble = Ensemble([model.eval()])
    source = batch(7, 3)
    chosen = options(length_penalty=0.6, finished=finished)
    for row, hypotheses in zip(
        source, beam_search(ensemble, source, chosen), strict=True
    ):
        alone = row[row != PADDING].unsqueeze(0)
        for one in hypotheses:
            target = torch.tensor([*one.tokens, END])
            with torch.no_grad():
                logits, _ = model(alone, torch.tensor([[END, *one.tokens]]))
            steps = logits[0].log_softmax(1).gather(1, target.unsqueeze(1))
            total = float(steps.sum())
            assert one.score == pytest.approx(total / len(target) ** 0.6, abs=1e-5)
            given = log_probabilities(ensemble, alone, target.view(1, 1, -1))
            assert float(given) == pytest.approx(total, abs=1e-9)


@torch.inference_mode()
def test_a_network_follows_its_hypotheses(root: Path) -> None:
    """The first hypothesis of each sentence becomes the second, and a sentence is dropped."""
    source = batch(9, 2, 5)
    export_extensions(["examples/transformer.py"], root)
    settings = {"kind": "transformer", "layers": 2, "width": 32, "heads": 4}
    example = build_network(parse_architecture(settings), TYPES, TYPES).double()
    assert_incremental_equals_full(example, source, READ)
    for model in (*RECURRENT, example):
        expected = model.eval()(source, READ)[0].log_softmax(2)
        state = Ensemble([model]).start(source, 2)
        state.step(READ[:, :1].expand(-1, 2))
        state.step(torch.stack([READ[:, 1], READ[:, 2]], 1))
        state.select(np.array([1, 0, 3, 2, 5, 4]))
        state.keep(np.array([0, 2]))
        found, _ = state.step(READ[[0, 2], 2:3].expand(-1, 2))
        torch.testing.assert_close(found[:, 1], expected[[0, 2], 2])


# ---- several networks ----


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_what_an_ensemble_averages(average: Average) -> None:
    """Attention, too, of those that attend: the LSTM has none."""
    networks = [network(0), network(1), lstm()]

    def step(*chosen: Network) -> Any:
        state = Ensemble(chosen, average).start(batch(5, 8), 1)
        return state.step(torch.full((2, 1), END))

    with torch.no_grad():
        found, attention = step(*networks)
        predictions, attended = zip(*map(step, networks), strict=True)
    each = torch.stack(predictions)
    means = {
        "probabilities": each.exp().mean(0).log(),
        "log_probabilities": each.mean(0),
    }
    torch.testing.assert_close(found, means[average], atol=1e-9, rtol=0)
    mean = torch.stack(attended[:2]).mean(0)
    torch.testing.assert_close(attention, mean, atol=1e-9, rtol=0)
    assert attended[2] is None


def test_an_ensemble_has_the_positions_that_each_of_its_networks_has() -> None:
    together = Ensemble([network(), network(positions={"maximum": 16}), lstm()])
    assert [together.positions(side) for side in ("source", "target")] == [16, 16]
    assert Ensemble([lstm()]).positions("target") is None
