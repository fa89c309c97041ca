"""What every test can ask for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.mirror.write import write_mirror
from tests.support.loopback import LoopbackServer

ROOT = Path(__file__).resolve().parents[1]


SHARED = Path(os.environ.get("CONVS2S_SHARED", ROOT.parent / "shared"))
LEFT_OUT = pytest.StashKey[int]()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs the outside folder."""
    if "shared" in getattr(item, "fixturenames", ()):
        item.add_marker("shared")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs the outside folder where there is none, as in any clone."""
    if SHARED.is_dir():
        return
    left_out = [item for item in items if item.get_closest_marker("shared")]
    items[:] = [item for item in items if not item.get_closest_marker("shared")]
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = len(left_out)


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
    if not SHARED.is_dir():
        pytest.skip(f"second layer: {SHARED} is absent (set CONVS2S_SHARED to its place)")
    return SHARED


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The miniature mirror, written once; no test changes it."""
    folder = tmp_path_factory.mktemp("mirror")
    write_mirror(folder)
    return folder


@pytest.fixture(autouse=True)
def environment_as_before() -> Iterator[None]:
    """What a test's code exports, such as the Snakefile's PYTHONPATH, ends with the test."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """A web server that this process reaches without any proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    running = LoopbackServer()
    yield running
    running.close()
