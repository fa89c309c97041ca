"""What the download tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.loopback import LoopbackServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """A web server that this process reaches without any proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    running = LoopbackServer()
    yield running
    running.close()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "downloads" / "a.tgz"
