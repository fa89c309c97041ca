"""A sample of what ``make faults`` tries by the thousands."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from convs2s.cli.main import whole_parser
from tests.faults.campaign import (
    calls,
    clients,
    flips,
    kills,
    pairs,
    traced,
    writing,
)
from tests.faults.systems import READS_PROC


@READS_PROC
def test_hostile_inputs_are_read_or_refused_in_one_line(root: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.campaign.fuzzing", "60"]
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
    counts = pairs.run(5, names, said.append)
    assert said == []
    assert counts.total() == 5


def test_honest_clients_are_answered_among_hostile_ones() -> None:
    # The machine that runs the tests may be busy. Alone, a server answers within 2 s.
    faults, _ = clients.run(60, seconds=30)
    assert faults == []


def test_calls_that_fail_and_power_cuts_lose_nothing() -> None:
    if not traced.is_available():
        pytest.skip("strace is not installed, or may not trace: apt-get install strace")
    said: list[str] = []
    counts = calls.run(6, ("score rouge", "extract_corpus"), said.append)
    verdicts = sum(counts.values(), Counter())
    assert verdicts["faults"] == 0, said
    assert verdicts["cut"] == 2
    assert verdicts.total() == 6


def test_every_command_is_tried_by_failing_calls_or_left_out_with_a_reason() -> None:
    typed = set(writing.typed_commands(whole_parser()))
    tried = set()
    for command in typed:
        if any(f"{name} ".startswith(f"{command} ") for name in writing.TYPED):
            tried.add(command)
    assert tried | writing.LEFT_OUT.keys() == typed
    assert not tried & writing.LEFT_OUT.keys()


LOG = """
1 openat(AT_FDCWD</w>, "a.part", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</w/a.part>
1 write(3</w/a.part>, ""..., 5) = 5
1 fsync(3</w/a.part>) = 0
1 write(3</w/a.part>, ""..., 7) = 7
2 openat(AT_FDCWD</w>, "new/b", O_WRONLY|O_CREAT, 0666 <unfinished ...>
1 rename("a.part", "a") = 0
2 <... openat resumed>) = 4</w/new/b>
2 write(4</w/new/b>, ""..., 9) = 9
2 openat(AT_FDCWD</w>, "c", O_WRONLY|O_CREAT, 0666) = 5</w/c>
2 write(5</w/c>, ""..., 4) = 4
2 fsync(5</w/c>) = 0
2 rename("/w/new", "/w/old") = 0
2 rename("c", "d") = -1 EIO (Input/output error) (INJECTED)
2 write(1<pipe:[9]>, ""..., 3 <unfinished ...>
"""


def test_what_a_power_cut_takes_is_read_from_the_calls(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(LOG.lstrip())
    found = list(traced.calls(log, Path("/w")))
    lost = calls.unsynced(found)
    assert lost == {Path("/w/a"): (5, 7), Path("/w/old/b"): (0, 9)}
    assert [call.number for call in found if call.name == "rename"] == [1, 1, 2]
    assert [call.paths for call in found if call.is_injected] == [
        (Path("/w/c"), Path("/w/d"))
    ]


@pytest.mark.slow
def test_a_killed_stage_ends_with_the_same_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults = kills.run(len(kills.STAGES) * kills.IN_A_ROW)
    assert faults.total() == 0, capsys.readouterr().out
