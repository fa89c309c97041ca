"""How long does Snakemake plan before the first job starts?

Plans each target as if nothing had been run (``snakemake -n --forceall``), five times, in the
folder where it is called. Prints each target's jobs and its median seconds and, last, one JSON
object; its ``share`` is that time over the time of ``snakemake --version`` in the same run.

    python benchmarks/planning.py
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time

TARGETS = ("results/wmt14_en_fr/bleu.txt", "paper")
"""One headline of the paper, and every table and figure of config/paper.yaml."""

RUNS = 5


def main() -> None:
    """Plan, print."""
    parser = argparse.ArgumentParser(
        description="Seconds until the jobs of a target are known."
    )
    parser.add_argument(
        "targets", nargs="*", default=TARGETS, help="default: %(default)s"
    )
    targets = parser.parse_args().targets
    bare, _ = timed("--version")
    print(f"snakemake --version: {bare:.2f} s", flush=True)
    figures = {}
    for target in targets:
        seconds, said = timed("-n", "--forceall", "--quiet", "rules", "--", target)
        jobs = int(re.findall(r"^total +(\d+)", said, re.MULTILINE)[-1])
        print(f"{target}: {jobs} jobs, {seconds:.2f} s", flush=True)
        figures[target] = {
            "jobs": jobs,
            "seconds": round(seconds, 2),
            "share": round(seconds / bare, 2),
        }
    print(json.dumps({"version_seconds": round(bare, 2), "targets": figures}))


def timed(*arguments: str) -> tuple[float, str]:
    """Return the median wall time of a Snakemake command, and what it said."""
    seconds = []
    for _ in range(RUNS):
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds), done.stdout


if __name__ == "__main__":
    main()
