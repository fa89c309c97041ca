"""This project beside others: the table, and that all of it runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import compare
from compare import Row, System
from environment import ENVIRONMENTS, enter

SCRIPT = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--alone", action="store_true")
arguments = parser.parse_args()
assert arguments.batch < 100, "too many"
figures = {"count": arguments.batch, "processor_seconds": 2.0, "peak_bytes": arguments.batch}
print("said before")
print(json.dumps(figures | {"alone": arguments.alone}))
"""


def system(folder: Path, **stated: Any) -> System:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return System((str(script),), **{"options": {}} | stated)


def test_the_fastest_setting_is_kept_and_one_that_fails_is_not(tmp_path: Path) -> None:
    one = system(tmp_path, tuned={"batch": (None, 16, 8, 128)}, options={"alone": True})
    one.tune()
    assert one.options == {"alone": True, "batch": 16}
    assert one.settings == "16"
    one.sample()
    (figures,) = one.samples
    assert (figures["rate"], figures["alone"]) == (8.0, True)
    small = system(tmp_path, tuned={"batch": (8, None)}, tuned_by="peak_bytes")
    small.tune()
    assert small.options == {}


def test_a_system_that_fails_says_why_and_is_not_tried_again(tmp_path: Path) -> None:
    one = system(tmp_path, options={"batch": 200})
    one.sample()
    assert one.failure == "AssertionError: too many"
    (tmp_path / "script.py").unlink()
    one.sample()
    assert one.samples == []
    assert one.failure == "AssertionError: too many"


def samples(*rates: float) -> list[dict[str, Any]]:
    return [{"rate": rate, "wait_seconds": rate} for rate in rates]


def test_the_table_has_medians_ratios_and_verdicts() -> None:
    ours = System(
        ("a",), {"precision": "int8"}, {"precision": ()}, samples=samples(120, 90, 110)
    )
    theirs = System(("b",), {}, samples=samples(100, 100, 100))
    broken = System(("c",), {}, failure="c could not be installed: see c.log")
    waits = System(("d",), {}, samples=samples(0.01, 0.02, 0.03))
    rows = [
        Row("fast", ours, theirs, "peer, fp32", 1.2),
        Row("also", ours, theirs, "peer, fp32", 1.1),
        Row("lost", ours, broken, "c", 1.0),
        Row("wait: ms", waits, None, "", 20, "wait_seconds", 1e3, least=True),
    ]
    figures = compare.figures_of("tiny", 3, rows)
    lines = compare.table(figures).splitlines()
    assert lines[-6:] == [
        "| fast | 110 (int8) | 100 (peer, fp32) | 1.10 (0.90 to 1.20) | 1.2, **not met** |",
        "| also | 110 (int8) | 100 (peer, fp32) | 1.10 (0.90 to 1.20) | 1.1, met |",
        "| lost | 110 (int8) (90 to 120) | not run (c) |  | 1 |",
        "| wait: ms | 20 (10 to 30) |  |  | 20 (ours), met |",
        "",
        "Not run: c could not be installed: see c.log.",
    ]
    assert "medians of 3 rounds" in lines[0]
    assert any(
        f"input: {name};" in lines[0] for name in ("CONVS2S_SHARED", "generated")
    )


def test_a_peer_that_cannot_be_installed_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("environment.ENVIRONMENTS", tmp_path / "peers")
    failed: subprocess.CompletedProcess[str] = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: failed)
    with pytest.raises(SystemExit) as stopped:
        enter("nothing", ("no-such-package==1.0",))
    assert (
        stopped.value.code
        == "nothing could not be installed: see build/peers/nothing.log"
    )
    assert (tmp_path / "peers/nothing.log").is_file()


def test_environments_lie_where_git_and_make_clean_know_them(root: Path) -> None:
    assert root.resolve() / "build" / "peers" == ENVIRONMENTS


@pytest.mark.slow
def test_the_comparison_runs_in_the_small(root: Path) -> None:
    script = str(root / "benchmarks/compare.py")
    done = subprocess.run(
        [sys.executable, script, "--quick"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["processor"]
    assert len(figures["rows"]) == 13
    assert all(row["ours"] > 0 for row in figures["rows"])
    peers = [row for row in figures["rows"] if row["peer"]]
    assert all(row["theirs"] or "not be installed" in row["failure"] for row in peers)
    assert [line for line in done.stdout.splitlines() if line.startswith("| beam 5")]
