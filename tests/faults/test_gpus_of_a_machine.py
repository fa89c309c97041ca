"""GPUs that trainings share by locks, that torch cannot use, or that a recipe does not suit."""

import os
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from torch.distributed import run

from convs2s import devices
from convs2s.config.decoding import DecodingSettings
from convs2s.config.model import Recipe
from convs2s.decoding.translate import load_ensemble
from convs2s.devices import (
    VISIBLE,
    check_architecture,
    check_precision,
    check_recipe,
    has_cpus_nearby,
    lock_folder,
    own_gpus,
    pick_device,
    tokens_at_a_time,
    worker_device,
)
from convs2s.errors import UserError
from convs2s.training.launch import launch, numa_options
from tests.support import tiny
from tests.support.refusals import refusal, says


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of locks in a place of the test's own, on a machine without a scheduler."""
    for name in (VISIBLE, "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return lock_folder()


def take(present: int = 2, wanted: int = 1) -> None:
    with own_gpus(present, wanted):
        pass


@pytest.mark.usefixtures("locks")
@pytest.mark.parametrize(
    ("visible", "first", "second"),
    [(None, ["0"], ["1"]), ("3,GPU-1f", ["3"], ["GPU-1f"])],
)
def test_two_trainings_on_two_gpus_get_one_each(
    monkeypatch: pytest.MonkeyPatch,
    visible: str | None,
    first: list[str],
    second: list[str],
) -> None:
    if visible is not None:
        monkeypatch.setenv(VISIBLE, visible)
    with own_gpus(2, 1) as one, own_gpus(2, 1) as other:
        assert one == first
        assert other == second


@pytest.mark.usefixtures("locks")
def test_a_training_waits_until_as_many_are_free(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(devices, "SECONDS_BETWEEN_TRIES", 0.01)
    started: list[list[str]] = []

    def wait() -> None:
        with own_gpus(2, 2) as both:
            started.append(both)

    waiting = threading.Thread(target=wait)
    with own_gpus(2, 1):
        waiting.start()
        waiting.join(0.1)
        assert started == []
        with own_gpus(2, 1) as other:  # what waits holds nothing
            assert other == ["1"]
    waiting.join()
    assert started == [["0", "1"]]
    assert capfd.readouterr().err == "waiting for 2 of the GPUs 0, 1\n"


@pytest.mark.usefixtures("locks")
def test_who_shares_gpus_or_has_been_granted_them_needs_no_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with own_gpus(3, 2), own_gpus(3, 2, waits=False) as shared:
        assert shared == ["0", "1"]
        with own_gpus(3, 1, waits=False) as free:
            assert free == ["2"]
    monkeypatch.setenv(VISIBLE, "0")  # another card in each job
    with own_gpus(1, 1) as one, own_gpus(1, 1) as other:
        assert one == other == ["0"]


@pytest.mark.usefixtures("locks")
@pytest.mark.parametrize("visible", ["0", "MIG-a,MIG-b"])
def test_more_gpus_than_cuda_sees_are_refused(
    monkeypatch: pytest.MonkeyPatch, visible: str
) -> None:
    monkeypatch.setenv(VISIBLE, visible)
    says(refusal(take, 1, 2), "2 GPUs are requested", "sees 1; request fewer")


def test_jobs_of_slurm_whose_gpus_have_equal_numbers_do_not_wait_for_each_other(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {locks}
    for number in ("12", "13"):
        monkeypatch.setenv("SLURM_JOB_ID", number)
        folders.add(lock_folder())
    assert len(folders) == 3


def test_the_folder_of_locks_is_its_owners_alone(
    locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take()
    assert locks.stat().st_mode & 0o777 == 0o700
    locks.chmod(0o755)
    says(refusal(take), "is not a safe folder", "belongs to another user", "TMPDIR")
    locks.chmod(0o700)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: locks.stat().st_uid + 1)
        patch.setattr(devices, "lock_folder", lambda: locks)
        says(refusal(take), "is not a safe folder")
    locks.rename(tmp_path / "target")
    locks.symlink_to(tmp_path / "target")
    says(refusal(take), "is not a safe folder")


@pytest.mark.parametrize("name", ["choosing.lock", "0.lock"])
def test_planted_links_are_not_followed(locks: Path, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    locks.mkdir(mode=0o700)
    (locks / name).symlink_to(precious)
    says(refusal(take), f"{name}: the lock of a GPU cannot be opened")
    (locks / name).unlink()
    os.link(precious, locks / name)
    take()
    assert precious.read_text() == "kept"


GRANTS = {
    "CUDA_VISIBLE_DEVICES": "0,1",
    "SLURM_JOB_GPUS": "2,3",
    "NVIDIA_VISIBLE_DEVICES": "GPU-5f0e",
}


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which torch can use no GPU, and a job that was granted none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in GRANTS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("name", GRANTS)
def test_granted_gpus_that_torch_cannot_use_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert pick_device("auto") == "cpu"
    monkeypatch.setenv(name, GRANTS[name])
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    message = refusal(pick_device, "auto")
    says(message, f"{name}={GRANTS[name]}: torch can use no GPU", "CPUs only; install")
    assert message.endswith("; or set device to cpu")
    assert pick_device("cpu", 8) == "cpu"
    # As is typed where a GPU shall not be used.
    for typed in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", typed)
        assert pick_device("auto") == "cpu"


@pytest.mark.usefixtures("no_gpu")
def test_several_workers_take_a_cpu_only_where_it_is_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    init = Mock(side_effect=RuntimeError("too old (found version 11040). Bye"))
    monkeypatch.setattr(torch.cuda, "init", init)
    for given, place in ((("auto", 8), "auto for 8 workers"), (("cuda",), "cuda")):
        message = refusal(pick_device, *given)
        says(message, f"device {place}: torch can use no GPU: ", 'version 11040)" (see')
    assert pick_device("cpu", 8) == "cpu"


CU130 = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"
CU126 = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"


def have_gpu(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    capability: tuple[int, int],
    compiled: str = CU130,
) -> list[str]:
    """Let this machine have a GPU, and torch code for architectures; the precisions set."""
    asked: list[str] = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", asked.append)
    has_bf16 = capability >= (8, 0)
    answers = {
        "get_arch_list": compiled.split(),
        "get_device_capability": capability,
        "get_device_name": name,
        "is_available": True,
        "set_device": None,
        "device_count": 2,
        "is_bf16_supported": has_bf16,
    }
    for function, answer in answers.items():
        monkeypatch.setattr(
            torch.cuda, function, lambda *_, answer=answer, **__: answer
        )
    return asked


def test_a_gpu_multiplies_float32_in_tf32_and_a_cpu_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = have_gpu(monkeypatch, "NVIDIA H100", (9, 0))
    assert pick_device("cpu") == "cpu"
    assert asked == []
    assert pick_device("auto") == "cuda"
    assert asked == ["high"]


@pytest.mark.parametrize(
    ("capability", "compiled", "runs"),
    [
        ((7, 0), CU130, False),
        ((7, 5), CU130, True),
        ((8, 9), CU130, True),  # by the code for 8.6
        ((10, 3), CU130, True),
        ((12, 1), CU130, True),
        ((13, 0), CU130, True),  # by PTX
        ((12, 0), CU126, False),
        ((10, 3), "sm_100a compute_100a", False),  # only 10.0 has what they use
        ((10, 3), "sm_100f", True),
        ((12, 0), "compute_100f", False),  # of another family
        ((9, 0), "gfx90a gfx942", True),  # of ROCm
    ],
)
def test_a_gpu_that_torch_has_no_code_for_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capability: tuple[int, int],
    compiled: str,
    runs: bool,
) -> None:
    have_gpu(monkeypatch, "a GPU", capability, compiled)
    if runs:
        check_architecture()
    else:
        with pytest.raises(UserError):
            check_architecture()


VOLTA = ("Tesla V100", "(compute capability 7.0)", "has code only for sm_75")
TURING = ("Tesla T4", "(compute capability 7.5)", "does not support bf16")


@pytest.mark.parametrize(("capability", "words"), [((7, 0), VOLTA), ((7, 5), TURING)])
def test_an_old_gpu_is_refused_before_workers_start(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capability: tuple[int, int],
    words: tuple[str, ...],
) -> None:
    have_gpu(monkeypatch, words[0], capability)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    given = tiny.settings(precision="bf16")
    job = tiny.job(tmp_path / "task", tmp_path / "model", given, device="auto")
    says(refusal(launch, job, 1, 2, ["no", "command"]), *words)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"  # both are held
    if words == VOLTA:
        install = "install a build of torch", "docs/install.md", "set device to cpu"
        says(refusal(pick_device, "auto"), *words, *install)
        monkeypatch.setenv("LOCAL_RANK", "1")
        says(refusal(worker_device, "cuda"), *words, *install)
    else:
        check_precision("fp32", "cuda")
        check_precision("bf16", "cpu")
        bf16 = DecodingSettings(precision="bf16")
        says(refusal(load_ensemble, [tmp_path], "cuda", bf16), *words, "request")
    have_gpu(monkeypatch, "NVIDIA A100", (8, 0))
    check_precision("bf16", "cuda:1")


@pytest.mark.parametrize(
    ("device", "variable", "compiler", "usual"),
    [("cuda", "CC", "gcc", "(gcc or clang)"), ("cpu", "CXX", "g++", "(g++)")],
)
def test_a_compiled_training_needs_a_compiler(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    device: str,
    variable: str,
    compiler: str,
    usual: str,
) -> None:
    have_gpu(monkeypatch, "NVIDIA A100", (8, 0))
    monkeypatch.delenv(variable, raising=False)
    (tmp_path / compiler).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CPATH", f"/of/nothing:{tmp_path}")
    (tmp_path / "Python.h").touch()
    compiled = Recipe(compile=True)
    check_recipe(compiled, device)
    (tmp_path / compiler).unlink()
    check_recipe(Recipe(), device)
    message = refusal(check_recipe, compiled, device)
    says(message, f"compile: this node has no compiler {usual}; install")
    monkeypatch.setenv(variable, "of/no/toolchain")
    says(refusal(check_recipe, compiled, device), "no compiler (of/no/toolchain); ")


def test_a_compiled_training_needs_the_headers_of_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CXX", sys.executable)
    monkeypatch.delenv("CPATH", raising=False)
    monkeypatch.setattr("sysconfig.get_path", lambda name, scheme: str(tmp_path / "of"))
    (tmp_path / "Python.h").touch()
    monkeypatch.chdir(tmp_path)  # without CPATH, the compiler does not look here
    message = refusal(check_recipe, Recipe(compile=True), "cpu")
    says(message, f"no Python.h in {tmp_path}/of", "install them (python3.", "-dev on ")
    (tmp_path / "of").mkdir()
    (tmp_path / "of/Python.h").touch()
    check_recipe(Recipe(compile=True), "cpu")


@pytest.mark.parametrize(
    ("gigabytes", "stated", "tokens"),
    [
        (85, 4000, 32_000),  # of an A100 or H100 that is sold with 80 GB
        (150, 4000, 32_000),
        (42, 4000, 16_000),
        (25, 4000, 8000),
        (8, 4000, 4000),
        (85, 3000, 3000),  # a recipe's own
        (8, 9000, 9000),
    ],
)
def test_a_gpu_computes_as_many_tokens_at_a_time_as_fit_into_its_memory(
    monkeypatch: pytest.MonkeyPatch, gigabytes: int, stated: int, tokens: int
) -> None:
    properties = Mock(total_memory=gigabytes * 10**9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    assert tokens_at_a_time(stated, "cuda:0") == tokens


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists the CPUs of a GPU")
@pytest.mark.parametrize(
    ("listed", "allowed", "binds"),
    [
        ("0-1,8-9", {9}, True),
        ("0", {0, 1}, True),
        ("0-1,8-9", {2, 7}, False),  # Slurm gave this job CPUs of the other socket
        ("", {0}, False),
        (None, {0}, False),  # a container that hides the devices
    ],
)
def test_workers_are_bound_to_the_cpus_next_to_their_gpus_where_they_may_use_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    listed: str | None,
    allowed: set[int],
    binds: bool,
) -> None:
    gpu = Mock(pci_domain_id=0, pci_bus_id=0xDC, pci_device_id=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
    monkeypatch.setattr(devices, "PCI_DEVICES", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/numactl")
    if listed is not None:
        (tmp_path / "0000:dc:00.0").mkdir()
        (tmp_path / "0000:dc:00.0/local_cpulist").write_text(f"{listed}\n")
    assert has_cpus_nearby(0) == binds
    has_option = "--numa-binding" in run.get_args_parser().format_help()
    expected = ["--numa-binding=node"] if binds and has_option else []
    assert numa_options(2) == expected
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert numa_options(2) == []
