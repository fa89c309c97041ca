"""``python -m tests.faults.fuzzing``: a line for each reader, then a summary."""

import argparse
import os
import re
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import torch

from tests.faults.fuzzing.campaign import MOST_BYTES, MOST_SECONDS, run
from tests.faults.fuzzing.options import option_reader
from tests.faults.fuzzing.readers import readers
from tests.faults.fuzzing.samples import make_samples

ROOT = Path(__file__).resolve().parents[3]
FEW_INPUTS = 2000
"""So many are tried in one process, as each costs half a second."""


def main() -> None:
    """Try the inputs; exit with 1 where one finds a fault."""
    parser = argparse.ArgumentParser(description="Hostile inputs for every reader.")
    parser.add_argument("--inputs", type=int, default=20_000, help="in all [20000]")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs [1]")
    parser.add_argument(
        "--only", default="", help="regular expression of the readers' names"
    )
    parser.add_argument(
        "--kept", type=Path, help="folder for inputs that find a fault [a new one]"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    kept = arguments.kept or Path(tempfile.mkdtemp(prefix="convs2s-faults-"))
    with tempfile.TemporaryDirectory(prefix="convs2s-fuzzing-") as folder:
        faults = _run(arguments, Path(folder), kept)
    if not arguments.kept and not any(kept.iterdir()):
        kept.rmdir()
    sys.exit(1 if faults else 0)


def _run(arguments: argparse.Namespace, folder: Path, kept: Path) -> int:
    """Try the inputs in a folder; return the number of faults."""
    samples = folder / "samples"
    samples.mkdir()
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        make_samples(samples, ROOT)
        known = readers(samples, folder / "inputs")
        known.append(option_reader(samples, folder / "inputs"))
    chosen = [one for one in known if re.search(arguments.only, one.name)]
    outcomes = []
    for outcome in run(
        chosen,
        arguments.inputs,
        arguments.seed,
        kept,
        apart=arguments.inputs > FEW_INPUTS,
    ):
        outcomes.append(outcome)
        print(outcome, *outcome.faults, sep="\n  ", flush=True)
    faults = sum(len(one.faults) for one in outcomes)
    print(
        f"fuzzing: {sum(one.inputs for one in outcomes)} inputs of {len(outcomes)} readers: "
        f"{sum(one.read for one in outcomes)} read, {sum(one.refused for one in outcomes)} "
        f"refused, {faults} faults; {max(one.slowest for one in outcomes):.2f} s (of "
        f"{MOST_SECONDS:g}) and {max(one.bytes for one in outcomes) >> 20} MiB (of "
        f"{MOST_BYTES >> 20}) at most"
    )
    return faults


if __name__ == "__main__":
    main()
