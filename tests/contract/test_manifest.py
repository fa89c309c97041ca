"""What stands beside a number: the bytes it rests on, the code, the machine."""

import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from convs2s import __version__
from convs2s.files.checksums import sha256
from convs2s.manifest import manifest, processor, revision, run_manifest, weights_sha256
from tests.support.refusals import refuses

pytestmark = pytest.mark.usefixtures("in_folder")


def test_a_run_names_the_bytes_that_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("one").write_text("one")
    found = run_manifest(["one"], seed=3)
    assert found["sha256"] == {"one": sha256("one")}
    assert (found["seed"], found["convs2s"]) == (3, __version__)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H100")
    assert run_manifest([])["gpu"] == "NVIDIA H100"


def test_a_models_weights_have_a_checksum_of_their_own() -> None:
    path = "model.safetensors"

    def saved(description: str, **tensors: Any) -> object:
        save_file(tensors, path, {"convs2s": description})
        return run_manifest([path])["weights"]

    a, b = np.ones(2, np.float16), np.arange(6, dtype=np.float32).reshape(2, 3)
    first = saved("a dictionary", a=a, b=b)
    assert first == {path: weights_sha256(path)}
    assert saved("another one", b=b, a=a, candidates=np.arange(3)) == first
    assert saved("a dictionary", a=a, b=b + 1) != first
    assert saved("a dictionary", a=a, b=b.T) != first
    assert saved("a dictionary", a=a, b=b, c=a) != first
    Path(path).write_bytes(b"weights")
    refuses("model.safetensors: not a model file", run_manifest, [path])


def test_a_revision_is_a_commit_and_says_whether_files_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def git(command: str) -> str:
        typed = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *command.split()]
        return subprocess.check_output(typed, text=True).strip()

    git("init --quiet")
    Path("file").write_text("1")
    git("add file")
    git("commit --quiet --message one")
    commit = git("rev-parse HEAD")
    Path("untracked").touch()
    assert revision(Path()) == commit
    Path("file").write_text("2")
    assert revision(Path()) == f"{commit}+"
    monkeypatch.setenv("PATH", "")
    assert revision(Path()) is None  # there is no git


def test_a_processor_is_told_with_what_it_rounds_by() -> None:
    library = f"torch {metadata.version('torch')}"
    cpuinfo = Path("cpuinfo")
    for flags, rounds in (
        ("flags\t\t: fpu avx2 avx512f avx512_bf16", "AVX-512 bf16"),
        ("flags\t\t: fpu avx2", "AVX2"),
        ("Features\t: asimd", "NEON"),
    ):
        cpuinfo.write_text(f"model name\t: AMD EPYC 9R14\n{flags}\n")
        assert processor(cpuinfo) == f"AMD EPYC 9R14, {rounds}, {library}"
    assert manifest()["processor"] == processor()
