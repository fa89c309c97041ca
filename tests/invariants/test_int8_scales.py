"""The fixed scales of int8 are those of the weights, wherever and however often they are found."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from convs2s.decoding.search import beam_search
from convs2s.model_file import calibrated, load_model, load_weights
from convs2s.models.int8_scales import calibrate
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import Weights
from convs2s.models.steps import Precision
from tests.support.networks import TYPES, architecture_of, batch, network, options

Arrays = dict[str, npt.NDArray[Any]]
SIZES = (TYPES, TYPES)
TABLE = "encoder.embedding.tokens"


def weights_of(**stated: Any) -> Arrays:
    """Return the weights of a small network."""
    state = network(**stated).state_dict()
    return {name: one.float().numpy() * 0.5 for name, one in state.items()}


def test_a_model_file_has_the_scales_of_its_weights(model: Path) -> None:
    """Found again, with other threads and random numbers, they are the same to the last bit."""
    weights, description = load_weights(model)
    assert description.int8_scales
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    np.random.default_rng().random()
    again = calibrate(weights, description.architecture, description.sizes)
    torch.set_num_threads(threads)
    assert again == description.int8_scales


def best_scores(networks: Sequence[Weights], precision: Precision) -> list[float]:
    ensemble = OnnxEnsemble(networks, precision, "probabilities")
    found = beam_search(ensemble, batch(9, 2, 5, 1, 28), options(beam=3))
    return [hypotheses[0].score for hypotheses in found]


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"kernels": (1, 1, 1), "vocabulary_selection": {}},
        {"attention": (True, True, False), "attention_weights": "shared"},
        {"positions": {"source": False, "target": False}},
    ],
    ids=str,
)
def test_fixed_scales_find_nearly_what_fp32_finds(stated: dict[str, Any]) -> None:
    """Also beside a network that has none: each has a state and an output layer of its own kind."""
    weights = weights_of(**stated)
    network = weights, architecture_of(**stated), SIZES
    scales = calibrate(*network)
    assert scales
    exact = best_scores([Weights(*network)], "fp32")
    rounded = best_scores([Weights(*network, scales)], "int8")
    assert rounded == pytest.approx(exact, abs=0.05)
    assert rounded != best_scores([Weights(*network)], "int8")
    both = [Weights(*network, scales), Weights(*network)]
    assert best_scores(both, "int8") == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize("factor", [0.0, 3e3, 1e38])
def test_a_network_that_fixed_scales_would_spoil_has_none(factor: float) -> None:
    """Beside one type of huge values, all others would be zeros; what is zero has no scale."""
    arrays = weights_of()
    arrays["encoder.embedding.positions"] *= min(factor, 1.0)
    arrays[TABLE][:-1] *= min(factor, 1.0)
    arrays[TABLE][-1] *= factor
    assert calibrate(arrays, architecture_of(), SIZES) == {}


def test_a_network_without_graphs_has_no_scales(recurrent: Path) -> None:
    lstm, description = load_model(recurrent)
    assert calibrated(description, lstm.state_dict()) == description
