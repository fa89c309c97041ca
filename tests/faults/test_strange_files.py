"""Files that hold nothing, or what no program of ours would write: one clear line each."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from convs2s.errors import UserError
from convs2s.files.tensors import METADATA_KEY, load_tensors
from convs2s.files.text import read_lines, write_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq
from convs2s.model_file import describe_model, load_model
from tests.support.trained import TRAINED, import_trained


@pytest.mark.parametrize("suffix", ["zst", "gz", "bz2", "xz"])
def test_a_compressed_file_of_no_bytes_is_cut_short(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"text.{suffix}"
    write_lines(path, [])
    assert list(read_lines(path)) == []
    path.write_bytes(b"")
    with pytest.raises(
        UserError, match=f"^{path}: truncated: .* data ends too early, after 0 by"
    ):
        list(read_lines(path))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that was imported, beside its checkpoint."""
    return import_trained(tmp_path)


def import_again(
    folder: Path, weights: Mapping[str, torch.Tensor], language: str | None = None
) -> Path:
    """Import the checkpoint with other weights, or another language, to another model file."""
    path = folder / "model.pt"
    content = torch.load(path, weights_only=False)
    content["model"] |= weights
    if language is not None:
        content["args"].source_lang = language
    torch.save(content, path)
    dictionaries = TRAINED / "dict.en.txt", TRAINED / "dict.fr.txt"
    files = FairseqFiles(path, *dictionaries, TRAINED / "codes.3000")
    import_fairseq(
        files, folder / "2.st", task="demo", languages=None, preparation="moses_test"
    )
    return folder / "2.st"


def test_weights_may_share_their_memory(model: Path) -> None:
    content = torch.load(model.with_name("model.pt"), weights_only=False)["model"]
    memory = torch.ones(max(weight.numel() for weight in content.values()))
    shared = {
        name: memory[: weight.numel()].view(weight.shape)
        for name, weight in content.items()
    }
    network, _ = load_model(import_again(model.parent, shared))
    assert all(weight.isfinite().all() for weight in network.state_dict().values())


def test_a_type_of_numbers_without_operations_is_no_weight(model: Path) -> None:
    bits = torch.zeros(4, dtype=torch.uint8).view(torch.bits8)
    with pytest.raises(
        UserError, match=r"model\.pt: not a fairseq checkpoint: 'odd': .*Bits8"
    ):
        import_again(model.parent, {"odd": bits})


def test_half_a_surrogate_pair_is_not_imported(model: Path) -> None:
    with pytest.raises(
        UserError, match=r"2\.st: has half a surrogate pair, which is .*ud800"
    ):
        import_again(model.parent, {}, language="\ud800")


def test_half_a_surrogate_pair_in_a_model_file_is_no_type(model: Path) -> None:
    tensors, fields = load_tensors(model)
    fields["target_types"][7] = "a\ud800"
    save_file(tensors, model, {METADATA_KEY: json.dumps(fields)})
    for read in (load_model, describe_model):
        with pytest.raises(
            UserError, match=r"model\.safetensors: has half a surrogate pair"
        ):
            read(model)
