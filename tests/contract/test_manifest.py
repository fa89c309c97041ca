"""What stands beside a number: the bytes it rests on, the code, the machine."""

import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors.numpy import save_file

from convs2s import __version__
from convs2s.files.checksums import sha256
from convs2s.manifest import manifest, processor, revision, run_manifest
from tests.support.refusals import refusal, says


def test_a_run_names_the_bytes_that_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one"
    path.write_text("one")
    found = run_manifest([str(path)], seed=3)
    assert found["sha256"] == {str(path): sha256(path)}
    assert (found["seed"], found["convs2s"]) == (3, __version__)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H100")
    assert run_manifest([])["gpu"] == "NVIDIA H100"


def test_a_models_weights_have_a_checksum_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"

    def saved(description: str, **tensors: npt.NDArray[Any]) -> object:
        save_file(tensors, path, {"convs2s": description})
        stated = run_manifest([str(path)])["weights"]
        assert isinstance(stated, dict)
        return stated[str(path)]

    a, b = np.ones(2, np.float16), np.arange(6, dtype=np.float32).reshape(2, 3)
    first = saved("a dictionary", a=a, b=b)
    assert saved("another one", b=b, a=a, candidates=np.arange(3)) == first
    assert saved("a dictionary", a=a, b=b + 1) != first
    assert saved("a dictionary", a=a, b=b.T) != first
    assert saved("a dictionary", a=a, b=b, c=a) != first
    path.write_bytes(b"weights")
    says(refusal(run_manifest, [str(path)]), "model.safetensors: not a model file")


def test_a_revision_is_a_commit_and_says_whether_files_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(command: str) -> str:
        typed = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *command.split()]
        return subprocess.check_output(typed, cwd=tmp_path, text=True).strip()

    git("init --quiet")
    (tmp_path / "file").write_text("1")
    git("add file")
    git("commit --quiet --message one")
    commit = git("rev-parse HEAD")
    (tmp_path / "untracked").touch()
    assert revision(tmp_path) == commit
    (tmp_path / "file").write_text("2")
    assert revision(tmp_path) == f"{commit}+"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision(tmp_path) is None  # there is no git


def test_a_processor_is_told_with_what_it_rounds_by(tmp_path: Path) -> None:
    library = f"torch {metadata.version('torch')}"
    for flags, rounds in (
        ("flags\t\t: fpu avx2 avx512f avx512_bf16", "AVX-512 bf16"),
        ("flags\t\t: fpu avx2", "AVX2"),
        ("Features\t: asimd", "NEON"),
    ):
        (tmp_path / "cpuinfo").write_text(f"model name\t: AMD EPYC 9R14\n{flags}\n")
        assert processor(tmp_path / "cpuinfo") == f"AMD EPYC 9R14, {rounds}, {library}"
    assert manifest()["processor"] == processor()
