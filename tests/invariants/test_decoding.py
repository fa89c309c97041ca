"""A sentence's translation is the same in any batch, on any threads, step by step or at once."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.rescoring import log_probabilities
from convs2s.decoding.search import beam_search
from convs2s.decoding.translate import LineTranslator, Translation
from convs2s.model_file import load_model
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network
from convs2s.models.steps import Average, Precision, Shortlisted
from tests.support import tiny
from tests.support.networks import (
    batch,
    lstm,
    network,
    options,
)

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
    lengths = [*range(40), *range(40)]
    lines = [" ".join(generator.choices(tiny.WORDS, k=length)) for length in lengths]
    short = {"beam": beam, "maximum_length": {"factor": 0.2, "offset": 2}}

    def translated(
        order: Sequence[int], threads: int = 1, **changes: object
    ) -> list[Translation]:
        settings = DecodingSettings.model_validate(
            {**short, "precision": precision, **changes}
        )
        translator = LineTranslator([sharp], settings, "cpu", threads=threads)
        found = list(translator.translate(lines[place] for place in order))
        assert [one.line for one in found] == list(range(1, len(lines) + 1))
        return [one for _, one in sorted(zip(order, found, strict=True))]

    places = range(len(lines))
    shuffled = generator.sample(places, len(places))
    expected = translated(places, batch_sentences=64)
    assert expected[0].text == ""
    assert len({one.text for one in expected}) > 40
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


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_another_shortlist_beside_it_changes_no_output(precision: Precision) -> None:
    torch.manual_seed(3)
    types = 400
    model = build_network(tiny.settings().architecture, types, types)
    for parameter in model.parameters():
        parameter.data.mul_(1.5)
    ensemble = Ensemble([model], precision=precision)
    source = torch.randint(3, types, (24, 12))
    source[:, -1] = END
    own = torch.rand(24, types) < 0.3
    own[:, :3] = True

    def found(rows: slice) -> list[tuple[list[int], float]]:
        chosen = torch.nonzero(own[rows].any(0)).flatten()
        shortlist = Shortlisted(chosen.numpy(), (~own[rows][:, chosen]).numpy())
        results = beam_search(ensemble, source[rows], options(beam=4), shortlist)
        return [(one.tokens, one.score) for each in results for one in each]

    alone = [one for row in range(24) for one in found(slice(row, row + 1))]
    for (tokens, score), expected in zip(found(slice(24)), alone, strict=True):
        assert tokens == expected[0]
        assert score == pytest.approx(expected[1])


# ---- step by step or at once ----


@pytest.mark.parametrize("make", [network, lstm])
def test_a_score_is_the_likelihood_by_a_full_pass(make: Callable[[], Network]) -> None:
    """That of a search, and that of its output as a given translation."""
    model = make().eval()
    ensemble = Ensemble([model])
    source = batch(7, 3)
    found = beam_search(ensemble, source, options(length_penalty=0.6))
    for row, hypotheses in zip(source, found, strict=True):
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


# ---- several networks ----


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_what_an_ensemble_averages(average: Average) -> None:
    networks = [network(0), network(1), lstm()]
    first = torch.full((2, 1), END)

    def step(*chosen: Network) -> tuple[torch.Tensor, torch.Tensor | None]:
        return Ensemble(chosen, average).start(batch(5, 8), 1).step(first)

    with torch.no_grad():
        found, attention = step(*networks)
        each = [step(one) for one in networks]
    predictions = torch.stack([prediction for prediction, _ in each])
    if average == "log_probabilities":
        expected = predictions.mean(0)
    else:
        expected = predictions.exp().mean(0).log()
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    attended = [one for _, one in each if one is not None]
    assert len(attended) == 2  # the LSTM has none
    mean = torch.stack(attended).mean(0)
    torch.testing.assert_close(attention, mean, atol=1e-9, rtol=0)


def test_an_ensemble_has_the_positions_that_each_of_its_networks_has(
    model: Path,
) -> None:
    short, _ = load_model(model)
    together = Ensemble([network(), short, lstm()])
    assert [together.positions(side) for side in ("source", "target")] == [16, 16]
    assert Ensemble([lstm()]).positions("target") is None
