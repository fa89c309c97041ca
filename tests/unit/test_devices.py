"""GPUs of trainings that share a machine, by their locks alone."""

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from convs2s import devices
from convs2s.config.decoding import DecodingSettings
from convs2s.config.model import Recipe
from convs2s.decoding.translate import load_ensemble
from convs2s.devices import (
    VISIBLE,
    check_architecture,
    check_precision,
    check_recipe,
    keep_freed_memory,
    lock_folder,
    own_gpus,
    pick_device,
    worker_device,
)
from convs2s.errors import UserError
from convs2s.training.launch import launch
from convs2s.training.run import train
from tests.support import tiny


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of locks in a place of the test's own, on a machine without a scheduler."""
    for name in (VISIBLE, "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return lock_folder()


@pytest.mark.usefixtures("locks")
def test_two_trainings_on_two_gpus_get_one_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with own_gpus(2, 1) as first, own_gpus(2, 1) as second:
        assert (first, second) == (["0"], ["1"])
    monkeypatch.setenv(VISIBLE, "3,GPU-1f")
    with (
        own_gpus(2, 1) as first,
        own_gpus(2, 1) as second,
    ):
        assert (first, second) == (["3"], ["GPU-1f"])


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
def test_who_shares_gpus_holds_none() -> None:
    with (
        own_gpus(3, 2),
        own_gpus(3, 2, waits=False) as shared,
    ):
        assert shared == ["0", "1"]
        with own_gpus(3, 1, waits=False) as free:
            assert free == ["2"]


@pytest.mark.usefixtures("locks")
def test_what_a_scheduler_has_granted_is_taken_without_a_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VISIBLE, "0")  # another card in each job
    with (
        own_gpus(1, 1) as one,
        own_gpus(1, 1) as other,
    ):
        assert one == other == ["0"]


@pytest.mark.usefixtures("locks")
def test_parts_of_a_gpu_that_cuda_does_not_see_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VISIBLE, "MIG-a,MIG-b")
    with (
        pytest.raises(UserError, match="2 GPUs are asked for, but this job sees 1;"),
        own_gpus(1, 2),
    ):
        pass


def test_jobs_of_slurm_whose_gpus_have_equal_numbers_do_not_wait_for_each_other(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {locks}
    for number in ("12", "13"):
        monkeypatch.setenv("SLURM_JOB_ID", number)
        folders.add(lock_folder())
    assert len(folders) == 3


def take_one() -> None:
    with own_gpus(2, 1):
        pass


def test_the_folder_of_locks_is_its_owners_alone(locks: Path) -> None:
    take_one()
    assert locks.stat().st_mode & 0o777 == 0o700
    locks.chmod(0o755)
    with pytest.raises(
        UserError, match=r"is not a safe folder .*belongs to another user, .*TMPDIR"
    ):
        take_one()


def test_a_folder_of_locks_that_another_user_made_is_not_used(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: locks.stat().st_uid + 1)
    monkeypatch.setattr(devices, "lock_folder", lambda: locks)
    with pytest.raises(UserError, match="is not a safe folder"):
        take_one()


def test_planted_links_are_not_followed(locks: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(mode=0o700)
    locks.symlink_to(tmp_path / "target")
    with pytest.raises(UserError, match="is not a safe folder"):
        take_one()
    locks.unlink()
    precious = tmp_path / "precious"
    precious.write_text("kept")
    for name in ("choosing.lock", "0.lock"):
        locks.mkdir(mode=0o700, exist_ok=True)
        (locks / name).unlink(missing_ok=True)
        (locks / name).symlink_to(precious)
        with pytest.raises(
            UserError, match=rf"{name}: the lock of a GPU cannot be opened"
        ):
            take_one()
        (locks / name).unlink()
        os.link(precious, locks / name)
        take_one()
        (locks / name).unlink()
    assert precious.read_text() == "kept"


@pytest.mark.usefixtures("locks")
def test_more_gpus_than_there_are_are_refused() -> None:
    with (
        pytest.raises(
            UserError, match=r"2 GPUs are asked for, but this job sees 1; ask for fewer"
        ),
        own_gpus(1, 2),
    ):
        pass


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
    says = rf"device auto for {name}={GRANTS[name]}: torch can use no GPU: torch \S+ is built for "
    with pytest.raises(
        UserError, match=says + r"CPUs only; install .*; or set device to cpu$"
    ):
        pick_device("auto")
    assert pick_device("cpu", 8) == "cpu"
    # As is typed where a GPU shall not be used.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert pick_device("auto") == "cpu"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert pick_device("auto") == "cpu"


@pytest.mark.usefixtures("no_gpu")
def test_several_workers_take_a_cpu_only_where_it_is_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def old_driver() -> None:
        raise RuntimeError(
            "The NVIDIA driver on your system is too old (found version 11040). Bye"
        )

    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "init", old_driver)
    says = r"device auto for 8 workers: torch can use no GPU: .* \(found version 11040\)\" \(see"
    with pytest.raises(UserError, match=says):
        pick_device("auto", 8)
    with pytest.raises(UserError, match="device cuda: torch can use no GPU"):
        pick_device("cuda")
    assert pick_device("cpu", 8) == "cpu"


def test_a_gpu_multiplies_float32_in_tf32_and_a_cpu_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    have_gpu(monkeypatch, "NVIDIA H100", (9, 0))
    monkeypatch.setattr(torch, "set_float32_matmul_precision", asked.append)
    assert (pick_device("cpu"), asked) == ("cpu", [])
    assert (pick_device("auto"), asked) == ("cuda", ["high"])


CU130 = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"
CU126 = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"


def have_gpu(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    capability: tuple[int, int],
    compiled: str = "",
) -> None:
    """Let this machine have a GPU, and torch code for architectures."""
    monkeypatch.setattr(torch.cuda, "get_arch_list", compiled.split)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", lambda name: None)
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda name: None)
    has_bf16 = capability >= (8, 0)
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation: has_bf16
    )


@pytest.mark.parametrize(
    ("capability", "compiled", "runs"),
    [
        ((7, 0), CU130, False),
        ((7, 0), CU126, True),
        ((7, 5), CU130, True),
        ((8, 9), CU130, True),  # by the code for 8.6
        ((9, 0), CU126, True),
        ((10, 3), CU130, True),
        ((12, 1), CU130, True),
        ((13, 0), CU130, True),  # by PTX
        ((12, 0), CU126, False),
        ((9, 0), "sm_90a", True),
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


def test_who_has_a_volta_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    have_gpu(monkeypatch, "Tesla V100-SXM2-16GB", (7, 0), CU130)
    expected = (
        r"^Tesla V100-SXM2-16GB \(compute capability 7.0\): torch \S+ has code only for "
        rf"{CU130}; install a build of torch for this GPU \(docs/install.md\), or set device to "
        "cpu$"
    )
    with pytest.raises(UserError, match=expected):
        pick_device("auto")
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(UserError, match=expected):
        worker_device("cuda")


def test_bf16_is_refused_on_a_gpu_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    have_gpu(monkeypatch, "Tesla T4", (7, 5), CU130)
    check_precision("fp32", "cuda")
    check_precision("bf16", "cpu")
    expected = r"precision bf16: Tesla T4 \(compute capability 7.5\) does not support bf16; request"
    with pytest.raises(UserError, match=expected):
        load_ensemble(
            [tmp_path / "no model"], "cuda", DecodingSettings(precision="bf16")
        )
    with pytest.raises(UserError, match=expected):
        train(
            tiny.job(
                tmp_path, tmp_path / "m", tiny.settings(precision="bf16"), device="cuda"
            )
        )
    have_gpu(monkeypatch, "NVIDIA A100", (8, 0), CU130)
    check_precision("bf16", "cuda:1")


@pytest.mark.parametrize(
    ("device", "variable", "compiler", "usual"),
    [("cuda", "CC", "gcc", "gcc or clang"), ("cpu", "CXX", "g++", r"g\+\+")],
)
def test_a_compiled_training_needs_a_compiler(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    device: str,
    variable: str,
    compiler: str,
    usual: str,
) -> None:
    have_gpu(monkeypatch, "NVIDIA A100", (8, 0), CU130)
    monkeypatch.delenv(variable, raising=False)
    (tmp_path / compiler).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CPATH", f"/of/nothing:{tmp_path}")
    (tmp_path / "Python.h").touch()
    check_recipe(Recipe(compile=True), device)
    (tmp_path / compiler).unlink()
    check_recipe(Recipe(), device)
    with pytest.raises(
        UserError, match=rf"^compile: this node has no compiler \({usual}\); "
    ):
        check_recipe(Recipe(compile=True), device)
    monkeypatch.setenv(variable, "of/no/toolchain")
    with pytest.raises(
        UserError, match=r"no compiler \(of/no/toolchain\); install one, or set"
    ):
        check_recipe(Recipe(compile=True), device)


def test_a_compiled_training_needs_the_headers_of_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CXX", sys.executable)
    monkeypatch.delenv("CPATH", raising=False)
    monkeypatch.setattr("sysconfig.get_path", lambda name, scheme: str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "Python.h").touch()
    monkeypatch.chdir(elsewhere)  # without CPATH, the compiler does not look here
    says = rf"^compile: this node has no headers of Python \(no Python.h in {tmp_path}\); install"
    with pytest.raises(UserError, match=says + r" them \(python3\.\d+-dev on Debian, "):
        check_recipe(Recipe(compile=True), "cpu")
    check_recipe(Recipe(), "cpu")
    (tmp_path / "Python.h").touch()
    check_recipe(Recipe(compile=True), "cpu")


@pytest.mark.parametrize(
    ("name", "capability", "said"),
    [
        ("Tesla V100", (7, 0), "has code only for sm_75"),
        ("Tesla T4", (7, 5), "does not support bf16"),
    ],
)
def test_a_training_with_several_workers_is_refused_before_they_start(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    capability: tuple[int, int],
    said: str,
) -> None:
    have_gpu(monkeypatch, name, capability, CU130)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    given = tiny.settings(precision="bf16")
    job = tiny.job(tmp_path / "task", tmp_path / "model", given, device="auto")
    with pytest.raises(UserError, match=said):
        launch(job, 1, 2, ["no", "command"])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"  # both are held


@pytest.mark.parametrize(("largest", "kept"), [(1 << 25, 1 << 25), (1 << 31, 1 << 30)])
def test_an_old_c_library_keeps_as_much_as_it_can(
    monkeypatch: pytest.MonkeyPatch, largest: int, kept: int
) -> None:
    threshold = [1 << 17]

    def mallopt(parameter: int, value: int) -> int:
        # As glibc before 2.35.
        if parameter == devices.M_MMAP_THRESHOLD and value <= largest:
            threshold[0] = value
        return 1

    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace(mallopt=mallopt))
    keep_freed_memory()
    assert threshold == [kept]
