"""``make faults``: every kind of fault at its full size, then a line for each kind."""

import subprocess
import sys
import time

COMMANDS = {
    "fuzzing": ["-m", "tests.faults.campaign.fuzzing"],
    "flips": ["-m", "tests.faults.campaign.flips"],
    "disk": ["-m", "pytest", "-q", "tests/faults/test_writers.py"],
    "pairs": ["-m", "tests.faults.campaign.pairs"],
    "calls": ["-m", "tests.faults.campaign.calls"],
    "kills": ["-m", "tests.faults.campaign.kills"],
    "clients": ["-m", "tests.faults.campaign.clients"],
}
"""Kind of fault -> what runs it; the last line that it prints is its summary."""


def main() -> None:
    """Run the kinds that are named, or all; exit with 1 where one found a fault."""
    chosen = sys.argv[1:] or list(COMMANDS)
    unknown = [one for one in chosen if one not in COMMANDS]
    if unknown:
        sys.exit(f"unknown: {' '.join(unknown)}; expected {', '.join(COMMANDS)}")
    summaries = []
    codes = []
    for name in chosen:
        print(f"-- {name}", flush=True)
        started = time.monotonic()
        command = [sys.executable, *COMMANDS[name]]
        last = ""
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                last = line.strip() or last
        codes.append(process.returncode)
        verdict = "found a fault" if process.returncode else "passed"
        minutes = (time.monotonic() - started) / 60
        summaries.append(f"{name} {verdict} in {minutes:.1f} minutes: {last}")
    print("--", *summaries, sep="\n")
    sys.exit(1 if any(codes) else 0)


if __name__ == "__main__":
    main()
