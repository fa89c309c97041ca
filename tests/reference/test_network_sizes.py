"""How many parameters a network has: by the papers, and counted without building it."""

import pytest
import torch

from convs2s.config.architecture import LstmArchitecture
from convs2s.config.load import load
from convs2s.models.build import build_network, shapes_alone
from tests.conftest import ROOT

MODELS = load(ROOT, {}).models


def test_the_lstm_has_the_papers_384_million_weights() -> None:
    """Without the biases: torch's layers have two each (Sutskever et al. 2014, section 3.4)."""
    with torch.device("meta"):
        model = build_network(LstmArchitecture(kind="lstm"), 160_000, 80_000)
    sizes = [
        one.numel() for name, one in model.named_parameters() if ".bias" not in name
    ]
    assert sum(sizes) == 384_000_000


def test_the_tutorials_network_has_its_number_of_parameters() -> None:
    """Its blocks share the weights of attention; a length a row is our weight normalization."""
    architecture = MODELS["tutorial_de_en"].architecture
    with torch.device("meta"):
        tutorial = build_network(architecture, 7855, 5893)
    parameters = tutorial.named_parameters()
    sizes = [one.numel() for name, one in parameters if not name.endswith("weight_g")]
    assert sum(sizes) == 37_351_685


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_counted_without_the_network(name: str) -> None:
    architecture = MODELS[name].architecture
    with shapes_alone():
        parameters = build_network(architecture, 101, 97).parameters()
        counted = sum(parameter.numel() for parameter in parameters)
    assert architecture.count_parameters(101, 97) == counted
