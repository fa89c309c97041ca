"""A sample of what ``make faults`` tries by the thousands."""

import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.cli.main import commands_below, whole_parser
from tests.faults.campaign import calls, clients, commands, flips, kills, pairs, traced
from tests.faults.systems import READS_PROC


@READS_PROC
def test_hostile_inputs_are_read_or_refused_in_one_line(root: Path) -> None:
    command = [sys.executable, "-m", "tests.faults", "fuzzing", "60"]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fuzzing: " in done.stdout.splitlines()[-1]


def test_a_flipped_bit_between_two_steps_is_noticed_or_harmless() -> None:
    found = flips.run(250)
    assert found["faults"] == 0
    assert found["noticed"] > 200


def test_two_commands_at_once_make_the_right_bytes_or_say_one_line() -> None:
    names = "download, published, export-results zip, remove-states, translate"
    assert pairs.run(5, names.split(", "))["faults"] == 0


def test_honest_clients_are_answered_among_hostile_ones() -> None:
    # The machine that runs the tests may be busy. Alone, a server answers within 2 s.
    assert clients.run(60, seconds=30)["faults"] == 0


def test_calls_that_fail_and_power_cuts_lose_nothing() -> None:
    if not traced.is_available():
        pytest.skip("strace is not installed, or may not trace: apt-get install strace")
    found = calls.run(6, ("score rouge", "extract_corpus"))
    assert found["faults"] == 0
    assert found["cut"] == 2
    assert found.total() == 6


# Commands of `convs2s` that are not tried by failing calls, and the reasons. What only prints does
# so in the way of `card` and `tokenize`, which are tried.
LEFT_OUT = """
serve: writes no file; tests/faults/test_server_requests.py tries its streams
get: downloads and converts as `download` and `import fairseq` do, which are tried
push: writes to the Hub alone, in one commit
kernels: measures for seconds; what it keeps is written as `results` writes
status, verify, config, completion, attention, compare-outputs, rerank: only print
score bleu, score compare, score oracle, score-pairs: only print
"""


def typed_commands(parser: ArgumentParser, words: str = "") -> Iterator[str]:
    """Yield the words of each command of a parser that runs something."""
    below = commands_below(parser)
    if not below:
        yield words.strip()
    for name, command in below.items():
        yield from typed_commands(command, f"{words} {name}")


def test_every_command_is_tried_by_failing_calls_or_left_out_with_a_reason() -> None:
    tried = [f"{name} " for name in calls.NAMES if name in commands.TYPED]
    left_out = set()
    for line in LEFT_OUT.strip().splitlines():
        left_out.update(line.partition(":")[0].split(", "))
    for command in typed_commands(whole_parser()):
        is_tried = any(name.startswith(f"{command} ") for name in tried)
        assert is_tried != (command in left_out), command


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
def test_a_killed_stage_ends_with_the_same_files() -> None:
    assert kills.run(len(kills.STAGES) * kills.IN_A_ROW)["faults"] == 0
