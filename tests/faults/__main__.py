"""``make faults``: every kind of fault at its full size, then a line for each kind.

``python -m tests.faults KIND SIZE`` tries one kind alone, so many times.
"""

import subprocess
import sys
import time
from importlib import import_module

SIZES = {
    "fuzzing": 20_000,
    "flips": 1000,
    "pairs": 200,
    "calls": 1000,
    "kills": 300,
    "clients": 10_000,
}
"""Kind of fault -> how many are tried; each is a module of ``campaign``, whose `run` tries them."""

DISK = "-m pytest -q tests/faults/test_writers.py"


def try_kinds(kinds: list[str]) -> None:
    """Try kinds in a process each; exit with 1 where one found a fault."""
    summaries = []
    code = 0
    for kind in kinds:
        print(f"-- {kind}", flush=True)
        started = time.monotonic()
        command = f"-m tests.faults {kind} {SIZES[kind]}" if kind in SIZES else DISK
        last = ""
        with subprocess.Popen(
            [sys.executable, *command.split()], stdout=subprocess.PIPE, text=True
        ) as process:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                last = line.strip() or last
        code |= bool(process.returncode)
        verdict = "found a fault" if process.returncode else "passed"
        minutes = (time.monotonic() - started) / 60
        summaries.append(f"{kind} {verdict} in {minutes:.1f} minutes: {last}")
    print("--", *summaries, sep="\n")
    sys.exit(code)


def main() -> None:
    """Try the kinds that are named, or all; or one kind alone, in this process."""
    kinds = sys.argv[1:] or ["disk", *SIZES]
    if len(kinds) == 2 and kinds[1].isdigit():
        tried = import_module(f"tests.faults.campaign.{kinds[0]}")
        sys.exit(1 if tried.run(int(kinds[1]))["faults"] else 0)
    if unknown := [kind for kind in kinds if kind not in ("disk", *SIZES)]:
        sys.exit(f"unknown: {' '.join(unknown)}; expected disk, {', '.join(SIZES)}")
    try_kinds(kinds)


if __name__ == "__main__":
    main()
