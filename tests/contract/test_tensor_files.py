"""Files of tensors: the bytes of safetensors' own writer, one tensor in memory at a time."""

import os
import re
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from convs2s.files import tensors
from convs2s.files.tensors import DIGEST, METADATA_KEY, load_tensors, save_tensors
from tests.support.refusals import refusal, says

CLEAR_REFS = Path("/proc/self/clear_refs")
KINDS = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool"


def test_a_file_is_what_safetensors_own_writer_makes_of_it(tmp_path: Path) -> None:
    """For whom umask says."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    written = {"scalar": torch.tensor(1.5)}
    for kind in KINDS.split():
        for count in (0, 1, 7):
            tensor = torch.arange(count).to(getattr(torch, kind))
            written[f'{kind} é"\\\t\x01\x7f {count}'] = tensor
    written["not contiguous"] = torch.arange(12.0).view(3, 4).t()
    description = {"what": "a \u2028 \n text", "epoch": 3}
    before = os.umask(0o027)
    save_tensors(ours, written, description)
    os.umask(before)
    assert ours.stat().st_mode & 0o777 == 0o640
    with safe_open(ours, framework="pt") as stored:
        metadata = stored.metadata()
    written["not contiguous"] = written["not contiguous"].contiguous()
    save_file(written, theirs, metadata)
    assert ours.read_bytes() == theirs.read_bytes()
    assert DIGEST in metadata[METADATA_KEY]
    found, described = load_tensors(ours)
    assert described == description
    assert all(torch.equal(found[name], tensor) for name, tensor in written.items())


def test_a_description_that_no_reader_takes_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "MOST_HEADER_BYTES", 1000)
    message = refusal(save_tensors, tmp_path / "model", {}, {"dictionary": "a" * 1000})
    says(message, "model: types, ", "safetensors can read at most 1,000 ... lower")
    assert not list(tmp_path.iterdir())


def resident(name: str) -> int:
    """A line of this process's status, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(rf"{name}:\s+(\d+)", status)[0]) << 10


@pytest.mark.skipif(not CLEAR_REFS.exists(), reason="Linux alone resets a peak")
def test_copies_of_tensors_are_in_memory_in_turn(tmp_path: Path) -> None:
    # 128 MB.
    large = {str(number): torch.ones(1024, 1024).t() for number in range(32)}
    CLEAR_REFS.write_text("5")  # VmHWM is that from now on (proc(5))
    before = resident("VmRSS")
    save_tensors(tmp_path / "state", large, {})
    assert resident("VmHWM") - before < 64 << 20
