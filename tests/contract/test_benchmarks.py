"""The benchmarks run in the small, and write what docs/performance.md shows of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import compare
from compare import Row, System
from gpu import missed
from tests.support.refusals import rows

BENCHMARKS = """
attention.py --scale demo --rounds 1 --updates 1 => 1, 2, 3, 4, 5
gpu.py --device cpu --tiny => measurements
lstm.py --updates 1 --precision fp32 => update_of_bare
scaling.py processes lengths beams --most 2 --quick => beams
compare.py --quick => rows
"""


@pytest.mark.slow
@pytest.mark.parametrize(("command", "part"), rows(BENCHMARKS))
def test_a_benchmark_runs_in_the_small(root: Path, command: str, part: str) -> None:
    script, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, str(root / "benchmarks" / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert part in figures
    assert '"holds": false' not in done.stdout


def test_a_gpu_that_misses_a_budget_is_named() -> None:
    measured = yaml.safe_load("""
        golden: {holds: false, peak_gigabytes: 0.1}
        training: {peak_gigabytes: 20.0}
        compiled: failed
        late: "not run: no time left"
    """)
    misses = missed({"device": "H100", "measurements": measured})
    named = [each.partition(" ")[0] for each in misses]
    assert named == ["golden", "training:", "compiled"]
    assert len(missed({"device": "cpu", "measurements": measured})) == 2


def test_the_table_has_medians_ratios_and_verdicts() -> None:
    ours, theirs = (
        System((name,), {}, samples=[{"rate": rate} for rate in rates])
        for name, rates in (("a", (120, 90, 110)), ("b", (100, 100, 100)))
    )
    broken = System(("c",), {}, failure="c could not be installed: see c.log")
    figures = [
        Row("fast", ours, theirs, "peer, fp32", 1.2),
        Row("lost", ours, broken, "c", 1.0),
        Row("wait: ms", ours, None, "", 20, "rate", 1e-1, least=True),
    ]
    table = compare.table(compare.figures_of("tiny", 3, figures))
    assert table.splitlines()[-5:] == [
        "| fast | 110 | 100 (peer, fp32) | 1.10 (0.90 to 1.20) | 1.2, **not met** |",
        "| lost | 110 (90 to 120) | not run (c) |  | 1 |",
        "| wait: ms | 11 (9 to 12) |  |  | 20 (ours), met |",
        "",
        "Not run: c could not be installed: see c.log.",
    ]
