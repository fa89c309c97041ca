"""A sample of what ``make faults`` tries by the thousands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.campaign import commands, flips, kills, pairs
from tests.support.systems import READS_PROC

INPUTS = 400


@READS_PROC
def test_hostile_inputs_are_read_or_refused_in_one_line(root: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.campaign.fuzzing", "--inputs"]
    done = subprocess.run(
        [*command, str(INPUTS)], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tried = re.search(r"^fuzzing: (\d+) inputs", done.stdout, re.MULTILINE)
    assert tried is not None
    assert int(tried[1]) >= INPUTS


def test_a_flipped_bit_between_two_steps_is_noticed_or_harmless(tmp_path: Path) -> None:
    found = flips.run(500, tmp_path)
    assert {name: count["silent"] for name, count in found.items()} == dict.fromkeys(
        found, 0
    )
    assert sum(count["noticed"] for count in found.values()) > 400


def test_two_commands_at_once_make_the_right_bytes_or_say_one_line() -> None:
    names = ("download", "published", "export folder", "remove-states", "translate")
    said: list[str] = []
    counts = pairs.run(6, 1, names, said.append)
    assert said == []
    assert counts.total() == 6
    assert commands.COMMANDS.keys() > {*names}


@pytest.mark.slow
def test_a_killed_stage_ends_with_the_same_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults = kills.run(len(kills.STAGES) * kills.IN_A_ROW)
    assert faults.total() == 0, capsys.readouterr().out
