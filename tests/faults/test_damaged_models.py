"""Models, states and token stores with a flipped bit: refused, or the very same."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from convs2s.errors import UserError
from convs2s.files.tensors import METADATA_KEY, load_tensors, save_tensors
from convs2s.model_file import load_model
from convs2s.training.run import train
from tests.support import tiny
from tests.support.damage import bits, flipped


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task and a finished training."""
    folder = tmp_path_factory.mktemp("trained")
    train(tiny.job(tiny.prepare(folder / "task"), folder / "run/model.safetensors"))
    return folder


def test_a_flipped_bit_in_a_model_is_refused_at_loading(trained: Path, tmp_path: Path) -> None:
    sound = trained / "run/model.safetensors"
    weights = load_model(sound)[0].state_dict()
    path = tmp_path / "model.safetensors"
    content = sound.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    passed = 0
    for bit in [*bits(content, 60), *bits(content[:header], 140)]:
        path.write_bytes(flipped(content, bit))
        try:
            found = load_model(path)[0].state_dict()
        except UserError:
            continue
        passed += 1
        assert bit < 8 * header  # such as a blank's that is a line feed now
        assert all(torch.equal(found[name], weights[name]) for name in weights)
    assert passed < 10


def test_a_flipped_weight_is_named_damage(trained: Path, tmp_path: Path) -> None:
    content = (trained / "run/model.safetensors").read_bytes()
    path = tmp_path / "model.safetensors"
    path.write_bytes(flipped(content, 8 * len(content) - 4))
    with pytest.raises(UserError, match=r"model\.safetensors: damaged: its content is not what"):
        load_model(path)


def test_a_flipped_bit_in_a_state_is_refused(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "run", tmp_path / "run")
    (best,) = (tmp_path / "run/state").glob("*/best.safetensors")
    best.write_bytes(flipped(best.read_bytes(), 8 * best.stat().st_size - 4))
    with pytest.raises(UserError, match=r"best\.safetensors: damaged"):
        train(tiny.job(trained / "task", tmp_path / "run/model.safetensors"))


@pytest.mark.parametrize("split", ["train", "valid"])
def test_a_flipped_bit_in_a_store_ends_a_training(
    trained: Path, tmp_path: Path, split: str
) -> None:
    shutil.copytree(trained / "task", tmp_path / "task")
    store = tmp_path / f"task/dataset/{split}.arrow"
    content = store.read_bytes()
    place = content.index(b"\x05\x00\x00\x00\x01\x00\x00\x00")  # an index, then </s>
    store.write_bytes(flipped(content, 8 * place))
    with pytest.raises(UserError, match=rf"{split}\.arrow: damaged: its SHA-256"):
        train(tiny.job(tmp_path / "task", tmp_path / "run/model.safetensors"))


def test_the_former_format_without_a_digest_is_read(trained: Path, tmp_path: Path) -> None:
    weights, fields = load_tensors(trained / "run/model.safetensors")
    path = tmp_path / "model.safetensors"
    description = json.dumps({**fields, "format": "convs2s model 2"})
    save_file(weights, path, {METADATA_KEY: description})
    load_model(path)


def test_an_unknown_preparation_is_refused_with_the_files_name(
    trained: Path, tmp_path: Path
) -> None:
    weights, fields = load_tensors(trained / "run/model.safetensors")
    path = tmp_path / "model.safetensors"
    description = json.dumps({**fields, "format": "convs2s model 2", "preparation": ""})
    save_file(weights, path, {METADATA_KEY: description})
    with pytest.raises(UserError, match=r"model\.safetensors: preparation: "):
        load_model(path)


def test_keys_of_any_kind_and_empty_tensors_have_a_digest(tmp_path: Path) -> None:
    tensors = {
        "a": torch.zeros(0),
        "b": torch.tensor(1.5),
        "c": torch.ones(3, dtype=torch.bfloat16),
    }
    save_tensors(tmp_path / "x", tensors, {"numbers": {2: "a", 10: "b"}, "pair": (1, 2)})
    assert load_tensors(tmp_path / "x")[1] == {"numbers": {"2": "a", "10": "b"}, "pair": [1, 2]}
