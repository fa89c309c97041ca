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


def main() -> None:
    """Try the kinds that are named, or all, in a process each; or one kind alone, in this one.

    Exit with 1 where one found a fault.
    """
    kinds = sys.argv[1:] or list(SIZES)
    if len(kinds) == 2 and kinds[1].isdigit():
        tried = import_module(f"tests.faults.campaign.{kinds[0]}")
        sys.exit(1 if tried.run(int(kinds[1]))["faults"] else 0)
    if unknown := {*kinds} - SIZES.keys():
        sys.exit(f"unknown: {' '.join(unknown)}; expected {', '.join(SIZES)}")
    verdicts = []
    code = 0
    for kind in kinds:
        print(f"-- {kind}", flush=True)
        started = time.monotonic()
        command = [sys.executable, "-m", "tests.faults", kind, str(SIZES[kind])]
        failed = subprocess.run(command, check=False).returncode != 0
        code |= failed
        minutes = (time.monotonic() - started) / 60
        verdict = "found a fault" if failed else "passed"
        verdicts.append(f"{kind} {verdict} in {minutes:.1f} minutes")
    print("--", *verdicts, sep="\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
