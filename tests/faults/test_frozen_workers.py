"""A launcher ends the workers that no longer move, and no others."""

import json
import os
import signal
import time
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import DEFAULT, Mock

import pytest

from convs2s.files.locks import wait_for_lock
from convs2s.training import heartbeat
from convs2s.training.heartbeat import PULSE, Pace, Pulse, beating, ending_stuck_workers
from tests.support.refusals import rows

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


def test_a_worker_that_is_busy_or_has_ended_is_not_a_frozen_one(
    tmp_path: Path, killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one whose disk is full for a moment is not."""
    with beating(None):
        assert list(tmp_path.iterdir()) == []
    writes = chain([OSError("full")] * 3, repeat(DEFAULT))
    monkeypatch.setattr(os, "pwrite", Mock(side_effect=writes, wraps=os.pwrite))
    end = time.monotonic() + 1.0
    with ending_stuck_workers(tmp_path), beating(str(tmp_path)):
        while time.monotonic() < end:
            pass
    with ending_stuck_workers(tmp_path):  # the pulse of the one that has ended is there
        time.sleep(1.0)
    assert killed == []


def test_a_frozen_worker_is_killed_once(
    tmp_path: Path, killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "SECONDS_BETWEEN_BEATS", 60.0)
    with beating(str(tmp_path)), ending_stuck_workers(tmp_path):
        time.sleep(0.25)
        assert killed == []
        time.sleep(0.75)
    assert killed == [(os.getpid(), signal.SIGKILL)]


PULSES = {
    "ahead": Pulse(updates=6, patience=0.1),
    "hanging": Pulse(updates=5, patience=0.1),
    "waiting": Pulse(updates=5, patience=0.1, is_waiting=True),
    "resting": Pulse(updates=5),
    "patient": Pulse(updates=5, patience=60.0),
}
# What the workers say => the numbers of those that are killed. On a GPU, the others may be ahead.
# Who rests writes a state, validates or compiles.
HANGING = """
waiting hanging waiting => 1
ahead hanging ahead => 1
hanging hanging => 0 1
waiting waiting =>
resting waiting =>
patient waiting =>
"""


def test_of_workers_whose_hearts_beat_the_one_that_the_others_wait_for_is_killed(
    tmp_path: Path, killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "MOST_MISSED", 100_000)
    for pulses, hanging in rows(HANGING):
        killed.clear()
        with ExitStack() as files:
            for process, pulse in enumerate(pulses.split()):
                file = files.enter_context((tmp_path / str(process)).open("w"))
                wait_for_lock(file)
                file.write(json.dumps(asdict(PULSES[pulse])) + "\n")
                file.flush()
            with ending_stuck_workers(tmp_path):
                time.sleep(0.5)
        expected = [(int(process), signal.SIGKILL) for process in hanging.split()]
        assert sorted(killed) == expected, pulses


def test_an_update_may_take_twenty_times_the_median_and_never_less_than_the_floor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PULSE, "patience", None)
    monkeypatch.setattr(heartbeat, "LEAST_PATIENCE", 15.0)
    clock = iter([0.0, 50.0, 51.0, 54.0, 57.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    found = []
    pace = Pace(is_compiled=False)
    for updates in (1, 1, 3, 3):  # in 50, 1, 3 and 3 seconds
        pace.note(updates)
        found.append(PULSE.patience)
    assert found == [1000.0, 510.0, 20.0, 20.0]
    with PULSE.resting():
        assert PULSE.patience is None
    assert PULSE.patience == 20.0
    monkeypatch.setattr(time, "monotonic", lambda: 57.0)
    for is_compiled, least in ((False, 15.0), (True, 1200.0)):
        Pace(is_compiled=is_compiled).note(1)
        assert PULSE.patience == least
