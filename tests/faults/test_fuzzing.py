"""A sample of what ``make faults`` tries by the ten thousands."""

import subprocess
import sys
from pathlib import Path

from tests.support.systems import READS_PROC

INPUTS = 300


@READS_PROC
def test_hostile_inputs_are_read_or_refused_in_one_line(
    root: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.faults.fuzzing", "--inputs", str(INPUTS)]
    done = subprocess.run(
        [*command, "--kept", str(tmp_path)],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout
    summary = done.stdout.splitlines()[-1].split()
    assert summary[0] == "fuzzing:"
    assert int(summary[1]) >= INPUTS
