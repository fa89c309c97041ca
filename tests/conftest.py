"""What every test can ask for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.loopback import LoopbackServer

ROOT = Path(__file__).resolve().parents[1]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs the outside folder: ``-m "not shared"`` is what a clone alone can run."""
    if "shared" in getattr(item, "fixturenames", ()):
        item.add_marker("shared")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of further golden outputs and real text: CONVS2S_SHARED, or ../shared."""
    folder = Path(os.environ.get("CONVS2S_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"second layer: {folder} is absent (set CONVS2S_SHARED to its place)")
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """A web server that this process reaches without any proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    running = LoopbackServer()
    yield running
    running.close()
