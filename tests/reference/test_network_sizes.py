"""Which parameters a network has: by the papers, by fairseq, and counted without building it."""

import json
from pathlib import Path

import pytest
import torch

from convs2s.config.architecture import LstmArchitecture
from convs2s.config.load import load
from convs2s.interop.checkpoint import Checkpoint
from convs2s.interop.fairseq import architecture_of, their_name, to_our_layout
from convs2s.models.build import build_network, shapes_alone
from tests.conftest import ROOT

MODELS = load(ROOT, {}).models


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("fconv_wmt_en_fr", 258_111_616),
        ("fconv_wmt_en_de", 209_569_920),
        ("fconv_wmt_en_ro", 137_144_448),
    ],
)
def test_the_released_architectures_have_as_many_as_in_fairseq(
    name: str, parameters: int
) -> None:
    types = 40_000  # fairseq's count is of as many on both sides
    found = MODELS[name].architecture.count_parameters(types, types)
    assert found == parameters


def test_the_lstm_has_the_papers_384_million_weights() -> None:
    """And biases: two of each layer's four gates, as torch has them, and the output's.

    Sutskever et al. 2014, section 3.4.
    """
    found = LstmArchitecture(kind="lstm").count_parameters(160_000, 80_000)
    assert found == 384_000_000 + 8 * 2 * 4 * 1000 + 80_000


def test_the_tutorials_network_has_its_number_of_parameters() -> None:
    """Its blocks share the weights of attention; a length a row is our weight normalization."""
    with shapes_alone():
        tutorial = build_network(MODELS["tutorial_de_en"].architecture, 7855, 5893)
    parameters = tutorial.named_parameters()
    sizes = [one.numel() for name, one in parameters if not name.endswith("weight_g")]
    assert sum(sizes) == 37_351_685


# Each architecture once: many models differ in their recipe alone.
NAMES = {model.architecture.model_dump_json(): name for name, model in MODELS.items()}


@pytest.mark.parametrize("name", NAMES.values())
def test_parameters_are_counted_without_the_network(name: str) -> None:
    architecture = MODELS[name].architecture
    with shapes_alone():
        network = build_network(architecture, 101, 97)
    counted = sum(parameter.numel() for parameter in network.parameters())
    assert architecture.count_parameters(101, 97) == counted


def test_released_architectures_have_the_parameters_of_ours(shared: Path) -> None:
    """By name those of each imported one, and by shape those of the papers' settings."""
    path = shared / "golden/fairseq/fconv_state_dict_keys.json"
    known = json.loads(path.read_text("utf-8"))
    assert len(known) == 5
    for name, entry in known.items():
        with shapes_alone():
            weights = {
                key: torch.empty(shape) for key, shape in entry["state_dict"].items()
            }
            types = len(weights["encoder.embed_tokens.weight"])
            architecture = architecture_of(Checkpoint(entry["args"], weights), name)
            network = build_network(architecture, types, types)
            names = {their_name(ours) for ours, _ in network.named_parameters()}
            assert names == weights.keys() - set(entry["buffers"]), name
            if name in MODELS:
                network = build_network(MODELS[name].architecture, types, types)
                for ours, parameter in network.named_parameters():
                    theirs = to_our_layout(ours, weights[their_name(ours)])
                    assert theirs.shape == parameter.shape
