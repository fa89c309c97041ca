"""What every test can ask for.

What a fixture alone needs is imported in it: half of the tests do without torch.
"""

import contextlib
import faulthandler
import fcntl
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from convs2s.config.load import load
from convs2s.config.settings import Settings
from tests.support import own_pair
from tests.support.checkout import Checkout, Done, check_out

ROOT = Path(__file__).resolve().parents[1]

# Tensors of tests are small: on a busy machine, threads wait for each other far longer than they
# work. What tests start inherits it, too.
os.environ["OMP_NUM_THREADS"] = "1"

# Some machines set it: what tests start prints in another order then than where nobody does.
os.environ.pop("PYTHONUNBUFFERED", None)

SHARED = Path(os.environ.get("CONVS2S_SHARED", ROOT.parent / "shared"))
STDERR = pytest.StashKey[int]()
SLOW_SECONDS = 3 * 3600.0


def pytest_configure(config: pytest.Config) -> None:
    """Keep the way to the terminal: the output of tests is captured."""
    config.stash[STDERR] = os.dup(2)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give a slow test its own time limit, in place of pyproject.toml's."""
    if item.get_closest_marker("slow"):
        faulthandler.dump_traceback_later(
            SLOW_SECONDS, exit=True, file=item.config.stash[STDERR]
        )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs the outside folder."""
    if "shared" in getattr(item, "fixturenames", ()):
        item.add_marker("shared")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Say what `-n auto` means: one process for each core that this one may use, and one more.

    Tests on a cluster wait for most of their time. Each process takes about 1 GB of memory.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()
    return min((cores or 1) + 1, 8)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Have processes take first what runs for minutes: Slurm's tests, and those of the workflow."""

    def place(item: pytest.Item) -> int:
        if "tests/workflow/test_slurm_" in item.nodeid:
            return 0
        return 1 if "tests/workflow/" in item.nodeid else 2

    if config.pluginmanager.hasplugin("xdist"):
        items.sort(key=place)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of further golden outputs and real text: CONVS2S_SHARED, or ../shared."""
    if not (SHARED / "golden").is_dir():  # a folder of this name may be anybody's
        pytest.skip(f"{SHARED} is absent (set CONVS2S_SHARED to its place)")
    return SHARED


@pytest.fixture(scope="session")
def pictures(root: Path) -> Path:
    """Where screenshots are kept, for people to look at."""
    return Path(os.environ.get("CONVS2S_SCREENSHOTS", root / "build/screenshots"))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file of a tiny training; no test changes it."""
    from convs2s.training.run import train
    from tests.support import tiny

    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    train(tiny.job(tiny.prepare(path.with_name("task")), path))
    return path


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny task, prepared once; no test changes it."""
    from tests.support import tiny

    return tiny.prepare(tmp_path_factory.mktemp("task"))


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The miniature mirror, written once; no test changes it."""
    from convs2s.mirror.write import write_mirror

    folder = tmp_path_factory.mktemp("mirror")
    write_mirror(folder)
    return folder


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a workflow ran, with its ``results/tiny``; no test changes it."""
    from tests.support import tiny

    folder = tmp_path_factory.mktemp("ran")
    with contextlib.chdir(folder):  # manifests hold paths as the workflow names them
        tiny.write_results()
    return folder


@pytest.fixture
def results(ran: Path, tmp_path: Path) -> Path:
    """A copy of that ``results/tiny``, to be changed."""
    shutil.copytree(ran, tmp_path / "ran")
    return tmp_path / "ran/results/tiny"


@pytest.fixture(params=["blas", "onednn"])
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each kernel that this machine has for the products of a training, in use for the test."""
    from convs2s.models.kernels import matmul

    if request.param not in matmul.kernels():
        pytest.skip(f"this machine has no {request.param}")
    matmul.use(request.param)
    yield request.param
    matmul.use("blas")


@pytest.fixture(autouse=True)
def environment_as_before() -> Iterator[None]:
    """What a test's code exports, such as the Snakefile's PYTHONPATH, ends with the test."""
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Compute on one thread, however many the command of an earlier test took."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@dataclass
class Terminal:
    """Runs the command with some standard input."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object, text: bytes = b"") -> str:
        from convs2s.cli.main import main

        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        main([str(argument) for argument in arguments])
        return self.capsys.readouterr().out

    def refused(self, *arguments: object, text: bytes = b"") -> str:
        """Return the message, or the exit code, with which the command ends early."""
        with pytest.raises(SystemExit) as ended:
            self(*arguments, text=text)
        return str(ended.value)


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return Terminal(monkeypatch, capsys)


@pytest.fixture(scope="session")
def settings(root: Path) -> Settings:
    """The configuration as it comes, at scale paper; no test changes it."""
    return load(root, {})


@pytest.fixture(scope="session")
def paper(settings: Settings) -> Settings:
    """The same, where tests hold other scales against it."""
    return settings


@pytest.fixture(scope="session")
def demo(root: Path) -> Settings:
    return load(root, {"scale": "demo"})


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in its own folder, where nothing has run: a scale's paths are relative."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own cache, in place of the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/convs2s"


@pytest.fixture(scope="session")
def sharp(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of larger random weights and long sentences, whose outputs hang by little."""
    path = tmp_path_factory.mktemp("sharp") / "model.safetensors"
    _save_random_model(path, model, 2, 1.5, positions={"maximum": 64})
    return path


@pytest.fixture(scope="session")
def recurrent(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An LSTM with random weights, over the vocabularies of the trained model."""
    path = tmp_path_factory.mktemp("lstm") / "lstm.safetensors"
    sizes = {"layers": 2, "cells": 12, "embedding": 10, "initialization": 0.5}
    _save_random_model(path, model, 3, 1.0, kind="lstm", **sizes)
    return path


def _save_random_model(
    path: Path, model: Path, seed: int, factor: float, **changes: Any
) -> None:
    """Write a model file like another one, of another network with weights made larger."""
    import torch

    from convs2s.config.architecture import parse_architecture
    from convs2s.model_file import calibrated, load_model, save_model
    from convs2s.models.build import build_network

    _, description = load_model(model)
    before = {} if "kind" in changes else description.architecture.model_dump()
    architecture = parse_architecture(before | changes)
    torch.manual_seed(seed)
    weights = build_network(architecture, *description.sizes).state_dict()
    for weight in weights.values():
        weight.mul_(factor)
    described = description.model_copy(update={"architecture": architecture})
    save_model(path, weights, calibrated(described, weights))


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A folder with the configuration, to be changed."""
    shutil.copytree(root / "config", tmp_path / "config")
    shutil.copy(root / "config.yaml", tmp_path)
    return tmp_path


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Checkout:
    """The workflow as it stands, with nothing run."""
    return check_out(root, tmp_path)


@pytest.fixture(scope="session")
def planned_checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The same for dry runs, which leave it as it is; no test changes it."""
    return check_out(root, tmp_path_factory.mktemp("planned"))


# Types that nearly every sentence has: all others are unknown to the word model.
OF_THE_FIRST_RUN = """
cores: 1
device: cpu
plots: {sentences: [1]}
overrides:
  models: {}
  tasks: {mine_en_nl_word: {vocabulary: {source_size: 3, target_size: 3}}}
  decodings: {beam5_en_de: {length_penalty: {tuned_on: valid}}}
"""


@pytest.fixture(scope="session")
def first_run(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Checkout, Done]:
    """The first command of the page on one's own language pair, as typed there, and its folder.

    Processes that share out the tests share it: the first that asks for it makes it.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "own.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = shared / "own.json"
        if not said.exists():
            checkout = check_out(root, shared / "own")
            own_pair.write_pair(root, checkout)
            stated = yaml.safe_load(OF_THE_FIRST_RUN)
            stated["overrides"]["models"]["small_plateau"] = own_pair.TINY
            checkout.configure(stated)
            done = checkout.shell(own_pair.commands(root)[0])
            said.write_text(json.dumps([done.code, done.said]))
    code, text = json.loads(said.read_text())
    return Checkout(shared / "own/convs2s"), Done(code, text)


@pytest.fixture
def finished(first_run: tuple[Checkout, Done], tmp_path: Path) -> Checkout:
    """A copy of that folder, which the test may change."""
    original, done = first_run
    done.succeeded()
    return original.copy(tmp_path)
