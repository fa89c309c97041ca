"""A launcher ends the workers that no longer move, and no others."""

import os
import signal
import time
from pathlib import Path

import pytest

from convs2s.training import heartbeat
from convs2s.training.heartbeat import beating, ending_frozen_workers

Killed = list[tuple[int, int]]


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Killed:
    """Which processes were sent which signals, instead of them; a worker has 0.4 seconds."""
    monkeypatch.setattr(heartbeat, "SECONDS_BETWEEN_BEATS", 0.02)
    monkeypatch.setattr(heartbeat, "SECONDS_BETWEEN_LOOKS", 0.02)
    monkeypatch.setattr(heartbeat, "MOST_MISSED", 20)
    sent: Killed = []
    monkeypatch.setattr(os, "kill", lambda *call: sent.append(call))
    return sent


def test_a_busy_worker_is_not_a_frozen_one(tmp_path: Path, killed: Killed) -> None:
    end = time.monotonic() + 1.0
    with ending_frozen_workers(tmp_path), beating(str(tmp_path)):
        while time.monotonic() < end:
            pass
    assert killed == []


def test_a_frozen_worker_is_killed_once(
    tmp_path: Path, killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "SECONDS_BETWEEN_BEATS", 60.0)
    with beating(str(tmp_path)), ending_frozen_workers(tmp_path):
        time.sleep(0.25)
        assert killed == []
        time.sleep(0.75)
    assert killed == [(os.getpid(), signal.SIGKILL)]


def test_a_worker_that_has_ended_is_left_alone(tmp_path: Path, killed: Killed) -> None:
    with beating(None):
        assert list(tmp_path.iterdir()) == []
    with beating(str(tmp_path)):
        pass
    with ending_frozen_workers(tmp_path):
        time.sleep(1.0)
    assert killed == []
