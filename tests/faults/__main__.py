"""``make faults``: every kind of fault at its full size, then a line for each kind."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

COMMANDS = {
    "fuzzing": ["-m", "tests.faults.fuzzing"],
    "flips": ["-m", "tests.faults.flips"],
    "disk": ["-m", "pytest", "-q", "tests/faults/test_disk_full.py"],
    "pairs": ["-m", "tests.faults.pairs"],
    "kills": ["-m", "tests.faults.kills"],
}
"""Kind of fault -> what runs it; the last line that it prints is its summary."""


def main() -> None:
    """Run the kinds that are named, or all; exit with 1 where one found a fault."""
    chosen = sys.argv[1:] or list(COMMANDS)
    unknown = [one for one in chosen if one not in COMMANDS]
    if unknown:
        sys.exit(f"unknown: {' '.join(unknown)}; expected {', '.join(COMMANDS)}")
    summaries, failed = [], False
    for name in chosen:
        print(f"-- {name}", flush=True)
        started, last = time.monotonic(), ""
        with subprocess.Popen(
            [sys.executable, *COMMANDS[name]],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                last = line.strip() or last
        verdict = "found a fault" if process.returncode else "passed"
        failed |= process.returncode != 0
        minutes = (time.monotonic() - started) / 60
        summaries.append(f"{name} {verdict} in {minutes:.1f} minutes: {last}")
    print("--", *summaries, sep="\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
