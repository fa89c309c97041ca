"""What every test can ask for."""

import faulthandler
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.mirror.write import write_mirror
from convs2s.models.kernels import matmul
from convs2s.models.kernels.matmul import Kernel
from tests.support import tiny
from tests.support.loopback import LoopbackServer
from tests.support.sharing_out import processes, scheduler, sorted_for_sharing

ROOT = Path(__file__).resolve().parents[1]

# Tensors of tests are small: on a busy machine, threads wait for each other far longer than they
# work. What tests start inherits it, too.
os.environ["OMP_NUM_THREADS"] = "1"

# Some machines set it: what tests start prints in another order then than where nobody does.
os.environ.pop("PYTHONUNBUFFERED", None)

SHARED = Path(os.environ.get("CONVS2S_SHARED", ROOT.parent / "shared"))
HAS_SHARED = (SHARED / "golden").is_dir()  # a folder of this name may be anybody's
LEFT_OUT = pytest.StashKey[int]()
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
    """Say what `-n auto` means."""
    return processes()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Keep together what shares fixtures."""
    return scheduler(config, log)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Share out the tests; leave out what needs the outside folder where there is none."""
    if config.pluginmanager.hasplugin("xdist"):
        items[:] = sorted_for_sharing(items)
    if HAS_SHARED:
        return
    left_out = [item for item in items if item.get_closest_marker("shared")]
    items[:] = [item for item in items if not item.get_closest_marker("shared")]
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = len(left_out)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that shares out the tests what this one of several left out."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take that from a process that has ended: all leave out the same."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what was left out."""
    if count := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(
            f"{count} tests of the second layer (marked shared) are left out: there is no {SHARED}"
        )


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of further golden outputs and real text: CONVS2S_SHARED, or ../shared."""
    if not HAS_SHARED:
        pytest.skip(
            f"second layer: {SHARED} is absent (set CONVS2S_SHARED to its place)"
        )
    return SHARED


@pytest.fixture(scope="session")
def pictures(root: Path) -> Path:
    """Where screenshots are kept, for people to look at."""
    return Path(os.environ.get("CONVS2S_SCREENSHOTS", root / "build/screenshots"))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file of a tiny training; no test changes it."""
    return tiny.trained_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The miniature mirror, written once; no test changes it."""
    folder = tmp_path_factory.mktemp("mirror")
    write_mirror(folder)
    return folder


@pytest.fixture(params=matmul.kernels())
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    """Each kernel that this machine has for the products of a training, in use for the test."""
    matmul.use(request.param)
    yield request.param
    matmul.use("blas")


@pytest.fixture(autouse=True)
def environment_as_before() -> Iterator[None]:
    """What a test's code exports, such as the Snakefile's PYTHONPATH, ends with the test."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Compute on one thread, however many the command of an earlier test took."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """A web server that this process reaches without any proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    running = LoopbackServer()
    yield running
    running.close()


@pytest.fixture(scope="session")
def paper(root: Path) -> Settings:
    """The configuration as it comes, at scale paper; no test changes it."""
    return load(root, {})


@pytest.fixture(scope="session")
def demo(root: Path) -> Settings:
    """The configuration at scale demo; no test changes it."""
    return load(root, {"scale": "demo"})


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in its own folder, where nothing has run: a scale's paths are relative."""
    monkeypatch.chdir(tmp_path)
