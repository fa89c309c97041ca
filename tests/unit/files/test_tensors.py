"""Files of tensors: the bytes of safetensors' own writer, one tensor in memory at a time."""

import os
import re
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from convs2s.errors import UserError
from convs2s.files import tensors
from convs2s.files.tensors import (
    _TYPES,
    DIGEST,
    METADATA_KEY,
    load_tensors,
    save_tensors,
)

CLEAR_REFS, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def test_a_file_is_what_safetensors_own_writer_makes_of_it(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    odd = '\N{LATIN SMALL LETTER E WITH ACUTE}"\\\t\x01\x7f'
    tensors = {
        f"{kind} {odd} {count}": torch.arange(count).to(
            getattr(torch, kind.removeprefix("torch."))
        )
        for kind in _TYPES
        for count in (0, 1, 7)
    }
    tensors["scalar"] = torch.tensor(1.5)
    tensors["not contiguous"] = torch.arange(12.0).view(3, 4).t()
    save_tensors(ours, tensors, {"what": "a \u2028 \n text", "epoch": 3})
    with safe_open(ours, framework="pt") as stored:
        metadata = stored.metadata()
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(contiguous, theirs, metadata)
    assert ours.read_bytes() == theirs.read_bytes()
    assert DIGEST in metadata[METADATA_KEY]
    found, description = load_tensors(ours)
    assert description == {"what": "a \u2028 \n text", "epoch": 3}
    for name, tensor in load_file(theirs).items():
        assert torch.equal(found[name], tensor)


def test_a_description_that_no_reader_takes_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "MOST_HEADER_BYTES", 1000)
    with pytest.raises(
        UserError, match=r"model: types, .* but safetensors reads at most 1,000: lower"
    ):
        save_tensors(tmp_path / "model", {}, {"dictionary": "a" * 1000})
    assert not list(tmp_path.iterdir())


def test_a_file_is_for_whom_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save_tensors(tmp_path / "model", {}, {})
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o640


def resident(name: str) -> int:
    """A line of this process's status, in bytes."""
    line = re.search(rf"{name}:\s+(\d+)", STATUS.read_text())
    assert line is not None
    return int(line[1]) << 10


@pytest.mark.skipif(not CLEAR_REFS.exists(), reason="Linux alone resets a peak")
def test_copies_of_tensors_are_in_memory_in_turn(tmp_path: Path) -> None:
    # 128 MB.
    tensors = {str(number): torch.ones(1024, 1024).t() for number in range(32)}
    CLEAR_REFS.write_text("5")  # VmHWM is that from now on (proc(5))
    before = resident("VmRSS")
    save_tensors(tmp_path / "state", tensors, {})
    assert resident("VmHWM") - before < 64 << 20
