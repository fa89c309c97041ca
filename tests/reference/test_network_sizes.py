"""How many parameters a network has: by the papers, and counted without building it."""

import pytest

from convs2s.config.architecture import LstmArchitecture, NetworkSettings
from convs2s.config.load import load
from convs2s.models.build import build_network, shapes_alone
from tests.conftest import ROOT

MODELS = load(ROOT, {}).models
RELEASED = {
    "fconv_wmt_en_fr": 258_111_616,
    "fconv_wmt_en_de": 209_569_920,
    "fconv_wmt_en_ro": 137_144_448,
}
"""fairseq's counts, of 40,000 types on both sides."""


def sizes_of(architecture: NetworkSettings, *types: int) -> dict[str, int]:
    with shapes_alone():
        named = build_network(architecture, *types).named_parameters()
    return {name: parameter.numel() for name, parameter in named}


def test_the_released_architectures_have_fairseqs_number() -> None:
    for name, number in RELEASED.items():
        sizes = sizes_of(MODELS[name].architecture, 40_000, 40_000)
        assert sum(sizes.values()) == number


def test_the_lstm_has_the_papers_384_million_weights() -> None:
    """Without the biases: torch's layers have two each (Sutskever et al. 2014, section 3.4)."""
    sizes = sizes_of(LstmArchitecture(kind="lstm"), 160_000, 80_000)
    assert sum(sizes[name] for name in sizes if ".bias" not in name) == 384_000_000


def test_the_tutorials_network_has_its_number_of_parameters() -> None:
    """Its blocks share the weights of attention; a length a row is our weight normalization."""
    sizes = sizes_of(MODELS["tutorial_de_en"].architecture, 7855, 5893)
    counted = [sizes[name] for name in sizes if not name.endswith("weight_g")]
    assert sum(counted) == 37_351_685


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_counted_without_the_network(name: str) -> None:
    architecture = MODELS[name].architecture
    sizes = sizes_of(architecture, 101, 97)
    assert architecture.count_parameters(101, 97) == sum(sizes.values())
