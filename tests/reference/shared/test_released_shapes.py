"""Released architectures have the parameters that fairseq gives them, by name and shape."""

import json
from pathlib import Path

import pytest
import torch

from convs2s.config.load import load
from convs2s.interop.checkpoint import Checkpoint
from convs2s.interop.fairseq import architecture_of, their_name, to_our_layout
from convs2s.models.build import build_network


def test_released_architectures_have_the_parameters_of_ours(shared: Path) -> None:
    known = json.loads(
        (shared / "golden/fairseq/fconv_state_dict_keys.json").read_text("utf-8")
    )
    assert len(known) == 5
    for name, entry in known.items():
        with torch.device("meta"):  # shapes alone
            weights = {
                key: torch.empty(shape) for key, shape in entry["state_dict"].items()
            }
            architecture = architecture_of(Checkpoint(entry["args"], weights), name)
            types = len(weights["encoder.embed_tokens.weight"])
            network = build_network(architecture, types, types)
        ours = {their_name(parameter) for parameter, _ in network.named_parameters()}
        assert ours == weights.keys() - set(entry["buffers"]), name


@pytest.mark.parametrize(
    "name", ["fconv_wmt_en_fr", "fconv_wmt_en_de", "fconv_wmt_en_ro"]
)
def test_shapes_of_the_released_architectures(
    shared: Path, root: Path, name: str
) -> None:
    golden = json.loads(
        (shared / "golden/fairseq/fconv_state_dict_keys.json").read_text()
    )[name]
    types = golden["vocab_used_for_the_shapes"]
    architecture = load(root).model(name).architecture
    with torch.device("meta"):
        model = build_network(architecture, types, types)
        shapes = {
            ours: to_our_layout(
                ours, torch.empty(golden["state_dict"].pop(theirs))
            ).shape
            for ours, theirs in (
                (ours, their_name(ours)) for ours in model.state_dict()
            )
        }
    assert {ours: tensor.shape for ours, tensor in model.state_dict().items()} == shapes
    assert set(golden["state_dict"]) == {"decoder.version"}
    assert golden["n_params"] == sum(
        parameter.numel() for parameter in model.parameters()
    )
