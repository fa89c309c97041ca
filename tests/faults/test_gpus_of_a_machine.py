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
from convs2s.training.launch import launch, numa_options
from tests.support import tiny
from tests.support.refusals import refusal, refuses, rows, says

GRANTS = {VISIBLE: "0,1", "SLURM_JOB_GPUS": "2,3", "NVIDIA_VISIBLE_DEVICES": "GPU-5f0e"}


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of locks, in a place of the test's own.

    This process was granted no GPU by a scheduler, and torch can use none.
    """
    for name in ("SLURM_JOB_ID", *GRANTS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return lock_folder()


def take(wanted: int = 1) -> None:
    """Take as many of the one GPU that there is."""
    with own_gpus(1, wanted):
        pass


def test_two_trainings_on_two_gpus_get_one_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with own_gpus(2, 1) as one, own_gpus(2, 1) as other:
        assert (one, other) == (["0"], ["1"])
    monkeypatch.setenv(VISIBLE, "3,GPU-1f")
    with own_gpus(2, 1) as one, own_gpus(2, 1) as other:
        assert (one, other) == (["3"], ["GPU-1f"])


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
    # `other` waits for a moment if it comes while both locks are being tried.
    assert capfd.readouterr().err.count("waiting for 2 of the GPUs 0, 1\n") == 1


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


def test_more_gpus_than_cuda_sees_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for visible in ("0", "MIG-a,MIG-b"):
        monkeypatch.setenv(VISIBLE, visible)
        refuses("2 GPUs are requested ... sees 1; request fewer", take, 2)


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
    refuses("is not a safe folder ... belongs to another user ... TMPDIR", take)
    locks.chmod(0o700)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: locks.stat().st_uid + 1)
        patch.setattr(devices, "lock_folder", lambda: locks)
        refuses("is not a safe folder", take)
    locks.rename(tmp_path / "target")
    locks.symlink_to(tmp_path / "target")
    refuses("is not a safe folder", take)


@pytest.mark.parametrize("name", ["choosing.lock", "0.lock"])
def test_planted_links_are_not_followed(locks: Path, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    locks.mkdir(mode=0o700)
    (locks / name).symlink_to(precious)
    refuses(f"{name}: the lock of a GPU cannot be opened", take)
    (locks / name).unlink()
    os.link(precious, locks / name)
    take()
    assert precious.read_text() == "kept"


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
    # As is typed where a GPU shall not be used.
    for typed in ("", "-1"):
        monkeypatch.setenv(VISIBLE, typed)
        assert pick_device("auto") == "cpu"


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


def have_gpu(
    monkeypatch: pytest.MonkeyPatch, name: str, capability: str, compiled: str = CU130
) -> Mock:
    """Let this machine have two GPUs, and torch code for these; return what sets TF32."""
    major, minor = map(int, capability.split("."))
    answers = {
        "get_arch_list": compiled.split(),
        "get_device_capability": (major, minor),
        "get_device_name": name,
        "is_available": True,
        "set_device": None,
        "device_count": 2,
        "is_bf16_supported": major >= 8,
    }
    for function, answer in answers.items():
        monkeypatch.setattr(torch.cuda, function, Mock(return_value=answer))
    set_precision = Mock()
    monkeypatch.setattr(torch, "set_float32_matmul_precision", set_precision)
    return set_precision


def test_a_gpu_multiplies_float32_in_tf32_and_a_cpu_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_precision = have_gpu(monkeypatch, "NVIDIA H100", "9.0")
    assert pick_device("cpu") == "cpu"
    set_precision.assert_not_called()
    assert pick_device("auto") == "cuda"
    set_precision.assert_called_once_with("high")


# Compute capability => what torch has code for => whether it runs. 13.0 runs by PTX; of sm_100a,
# only 10.0 has what it uses; compute_100f is of another family than 12.0; the last is ROCm.
ARCHITECTURES = f"""
7.0 => {CU130} => refused
7.5 => {CU130} => runs
8.9 => {CU130} => runs
10.3 => {CU130} => runs
13.0 => {CU130} => runs
12.0 => sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90 => refused
10.3 => sm_100a compute_100a => refused
10.3 => sm_100f => runs
12.0 => compute_100f => refused
9.0 => gfx90a gfx942 => runs
"""


def test_a_gpu_that_torch_has_no_code_for_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for capability, compiled, outcome in rows(ARCHITECTURES):
        have_gpu(monkeypatch, f"GPU of {capability}", capability, compiled)
        if outcome == "runs":
            check_architecture()
        else:
            refusal(check_architecture)


def test_an_old_gpu_is_refused_before_workers_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = tiny.settings(precision="bf16")
    job = tiny.job(tmp_path, tmp_path / "model", given, device="auto")
    turing = "Tesla T4", "(compute capability 7.5)", "does not support bf16"
    volta = "Tesla V100", "(compute capability 7.0)", "has code only for sm_75"
    for words, capability in ((turing, "7.5"), (volta, "7.0")):
        have_gpu(monkeypatch, words[0], capability)
        monkeypatch.setenv(VISIBLE, "")
        says(refusal(launch, job, 1, 2, ["no", "command"]), *words)
        assert os.environ[VISIBLE] == "0,1"  # both are held
    install = "install a build of torch", "docs/install.md", "set device to cpu"
    says(refusal(pick_device, "auto"), *volta, *install)
    monkeypatch.setenv("LOCAL_RANK", "1")
    says(refusal(worker_device, "cuda"), *volta, *install)


def test_bf16_needs_a_gpu_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    have_gpu(monkeypatch, "Tesla T4", "7.5")
    check_precision("fp32", "cuda")
    check_precision("bf16", "cpu")
    message = refusal(load_ensemble, [], "cuda", DecodingSettings(precision="bf16"))
    says(message, "Tesla T4 (compute capability 7.5) does not support bf16; request")
    have_gpu(monkeypatch, "NVIDIA A100", "8.0")
    check_precision("bf16", "cuda:1")


def test_a_compiled_training_needs_a_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    have_gpu(monkeypatch, "NVIDIA A100", "8.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CPATH", f"/of/nothing:{tmp_path}")
    (tmp_path / "Python.h").touch()
    compiled = Recipe(compile=True)
    for device, variable, compiler, usual in (
        ("cuda", "CC", "gcc", "(gcc or clang)"),
        ("cpu", "CXX", "g++", "(g++)"),
    ):
        monkeypatch.delenv(variable, raising=False)
        message = refusal(check_recipe, compiled, device)
        says(message, f"compile: this node has no compiler {usual}; install")
        check_recipe(Recipe(), device)
        (tmp_path / compiler).touch(mode=0o755)
        check_recipe(compiled, device)
        monkeypatch.setenv(variable, "of/no/toolchain")
        refuses("no compiler (of/no/toolchain); ", check_recipe, compiled, device)


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


# Gigabytes of the GPU => tokens that the recipe states (4000: none) => tokens at a time. 85 are
# sold as 80 GB.
MEMORY = """
85 => 4000 => 32000
150 => 4000 => 32000
42 => 4000 => 16000
25 => 4000 => 8000
8 => 4000 => 4000
85 => 3000 => 3000
8 => 9000 => 9000
"""


def test_a_gpu_computes_as_many_tokens_at_a_time_as_fit_into_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for row in rows(MEMORY):
        gigabytes, stated, tokens = map(int, row)
        gpu = Mock(total_memory=gigabytes * 10**9)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _, gpu=gpu: gpu)
        assert tokens_at_a_time(stated, "cuda:0") == tokens


# The list of CPUs next to a GPU => those that this job may use => whether it is bound. Slurm may
# give a job those of the other socket; a container may hide the devices.
CPUS = """
hidden => 0 => free
0-1,8-9 => 9 => bound
0 => 0 1 => bound
0-1,8-9 => 2 7 => free
=> 0 => free
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists the CPUs of a GPU")
def test_workers_are_bound_to_the_cpus_next_to_their_gpus_where_they_may_use_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Mock(pci_domain_id=0, pci_bus_id=0xDC, pci_device_id=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
    monkeypatch.setattr(devices, "PCI_DEVICES", tmp_path)
    has_option = "--numa-binding" in run.get_args_parser().format_help()
    cpus = tmp_path / "0000:dc:00.0/local_cpulist"
    for listed, allowed, outcome in rows(CPUS):
        affinity = Mock(return_value={*map(int, allowed.split())})
        monkeypatch.setattr(os, "sched_getaffinity", affinity)
        monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/numactl")
        if listed != "hidden":
            cpus.parent.mkdir(exist_ok=True)
            cpus.write_text(f"{listed}\n")
        assert has_cpus_nearby(0) == (outcome == "bound")
        expected = ["--numa-binding=node"] if outcome == "bound" and has_option else []
        assert numa_options(2) == expected
        monkeypatch.setattr("shutil.which", lambda _: None)
        assert numa_options(2) == []
