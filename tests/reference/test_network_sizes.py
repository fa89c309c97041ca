"""How many parameters a network has: by the papers, and counted without building it."""

import pytest
import torch

from convs2s.config.architecture import LstmArchitecture
from convs2s.config.load import load
from convs2s.models.build import build_network, shapes_alone
from tests.conftest import ROOT

MODELS = load(ROOT).models


def test_the_lstm_has_the_papers_384_million_weights() -> None:
    """64 million of them are in the recurrent layers (Sutskever et al. 2014, section 3.4)."""
    with torch.device("meta"):
        model = build_network(LstmArchitecture(kind="lstm"), 160_000, 80_000)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    # The paper counts no biases; torch's layers have two each.
    weights = {name: size for name, size in sizes.items() if ".bias" not in name}
    assert sum(weights.values()) == 384_000_000
    assert sum(size for name, size in weights.items() if ".layers." in name) == 64e6
    assert sum(sizes.values()) == 384_144_000


def test_the_tutorials_network_has_its_number_of_parameters() -> None:
    """Its blocks share the weights of attention; a length a row is our weight normalization."""
    architecture = MODELS["tutorial_de_en"].architecture
    with torch.device("meta"):
        tutorial = build_network(architecture, 7855, 5893)
    sizes = {name: one.numel() for name, one in tutorial.named_parameters()}
    lengths = sum(size for name, size in sizes.items() if name.endswith("weight_g"))
    assert sum(sizes.values()) - lengths == 37_351_685


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_counted_without_the_network(name: str) -> None:
    architecture = MODELS[name].architecture
    with shapes_alone():
        parameters = build_network(architecture, 101, 97).parameters()
        counted = sum(parameter.numel() for parameter in parameters)
    assert architecture.count_parameters(101, 97) == counted
