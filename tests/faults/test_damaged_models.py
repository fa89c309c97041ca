"""Models, states and token stores with a flipped bit: refused, or the very same."""

import shutil
from pathlib import Path

import pytest
import torch

from convs2s.errors import UserError
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.model_file import load_model
from convs2s.training.run import train
from tests.support import tiny
from tests.support.damage import bits, flipped


def test_a_flipped_bit_in_a_model_is_refused_at_loading(
    model: Path, tmp_path: Path
) -> None:
    weights = load_model(model)[0].state_dict()
    path = tmp_path / "model.safetensors"
    content = model.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    passed = 0
    for bit in [*bits(content, 30), *bits(content[:header], 70)]:
        path.write_bytes(flipped(content, bit))
        try:
            found = load_model(path)[0].state_dict()
        except UserError:
            continue
        passed += 1
        assert bit < 8 * header  # such as a blank's that is a line feed now
        assert all(torch.equal(found[name], weights[name]) for name in weights)
    assert passed < 5


def test_a_flipped_weight_is_named_damage(model: Path, tmp_path: Path) -> None:
    content = model.read_bytes()
    path = tmp_path / "model.safetensors"
    path.write_bytes(flipped(content, 8 * len(content) - 4))
    with pytest.raises(
        UserError, match=r"model\.safetensors: damaged: its content does not match"
    ):
        load_model(path)


def test_a_flipped_bit_in_a_state_is_refused(model: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(model.parent, run)
    (best,) = run.glob("state/*/best.safetensors")
    best.write_bytes(flipped(best.read_bytes(), 8 * best.stat().st_size - 4))
    with pytest.raises(UserError, match=r"best\.safetensors: damaged"):
        train(tiny.job(run / "task", run / "model.safetensors"))


@pytest.mark.parametrize("split", ["train", "valid"])
def test_a_flipped_bit_in_a_store_ends_a_training(
    model: Path, tmp_path: Path, split: str
) -> None:
    shutil.copytree(model.with_name("task"), tmp_path / "task")
    store = tmp_path / f"task/dataset/{split}.arrow"
    content = store.read_bytes()
    place = content.index(b"\x05\x00\x00\x00\x01\x00\x00\x00")  # an index, then </s>
    store.write_bytes(flipped(content, 8 * place))
    with pytest.raises(UserError, match=rf"{split}\.arrow: damaged: its SHA-256"):
        train(tiny.job(tmp_path / "task", tmp_path / "run/model.safetensors"))


def test_keys_of_any_kind_have_a_digest(tmp_path: Path) -> None:
    save_tensors(tmp_path / "x", {}, {"numbers": {2: "a", 10: "b"}, "pair": (1, 2)})
    assert load_tensors(tmp_path / "x")[1] == {
        "numbers": {"2": "a", "10": "b"},
        "pair": [1, 2],
    }
