"""A sample of what ``make faults`` tries by the thousands."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.campaign import clients, flips, kills, pairs
from tests.faults.systems import READS_PROC


@READS_PROC
def test_hostile_inputs_are_read_or_refused_in_one_line(root: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.campaign.fuzzing", "200"]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fuzzing: " in done.stdout.splitlines()[-1]


def test_a_flipped_bit_between_two_steps_is_noticed_or_harmless(tmp_path: Path) -> None:
    found = flips.run(250, tmp_path)
    assert {name: count["silent"] for name, count in found.items()} == dict.fromkeys(
        found, 0
    )
    assert sum(count["noticed"] for count in found.values()) > 200


def test_two_commands_at_once_make_the_right_bytes_or_say_one_line() -> None:
    names = ("download", "published", "export", "remove-states", "translate")
    said: list[str] = []
    counts = pairs.run(6, names, said.append)
    assert said == []
    assert counts.total() == 6


def test_honest_clients_are_answered_among_hostile_ones() -> None:
    pytest.importorskip("uvicorn", reason="the extra [serve] is not installed")
    # The machine that runs the tests may be busy. Alone, a server answers within 2 s.
    faults, _ = clients.run(60, seconds=30)
    assert faults == []


@pytest.mark.slow
def test_a_killed_stage_ends_with_the_same_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults = kills.run(len(kills.STAGES) * kills.IN_A_ROW)
    assert faults.total() == 0, capsys.readouterr().out
