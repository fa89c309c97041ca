"""What every test can ask for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.mirror.write import write_mirror
from tests.support.loopback import LoopbackServer

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of golden outputs and real text: CONVS2S_SHARED, or beside the repository."""
    folder = Path(os.environ.get("CONVS2S_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no golden data: {folder} is absent (set CONVS2S_SHARED to its place)")
    return folder


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The miniature mirror, written once; no test changes it."""
    folder = tmp_path_factory.mktemp("mirror")
    write_mirror(folder)
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
