"""Put each fault into a copy of the checkout, run its tests, and say which faults they miss.

``make mutants``, or ``python -m tests.mutants WORD ...`` for the faults of an area (a file of
tests/mutants/faults) or with a word in their names. Ends with 1 where a fault survives. Each core
works in a copy of its own, which has no folder of shared data beside it, as a public clone.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutants.faults import Fault, read_faults

ROOT = Path(__file__).resolve().parents[2]

PYTEST = (
    "pytest",
    "-xq",
    "--assert=plain",
    "-pno:cacheprovider",
    "-pno:xdist",
    "-m",
    "not slow and not gpu",
)
"""Tests run in the order given, up to the first that fails."""
PASSED, FAILED, TOO_LONG = 0, 1, 124
FOUND, SURVIVES = "found", "SURVIVES"
LIMIT_SECONDS = 1800
"""More than all tests of a room take; one that hangs ends by itself before (pyproject.toml)."""


def copy_checkout(folder: Path) -> None:
    """Copy what git tracks, and what it would."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True)
    for name in listed.split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def run_tests(
    root: Path, arguments: Iterable[str], *modules: str, limit: float | None = None
) -> tuple[int, str]:
    """Return pytest's exit status in the copy, and what it printed.

    ``modules`` are Python's arguments before those of ``-m pytest``. Without a limit of seconds
    nothing is changed in the copy: it keeps the bytecode for the runs with a limit.
    """
    environment = os.environ | {
        "PYTHONPATH": str(root / "src"),
        "PYTHONDONTWRITEBYTECODE": "1" if limit else "",
        "CONVS2S_SHARED": "/nonexistent",
        "OMP_NUM_THREADS": "1",  # every core has a fault of its own
    }
    process = subprocess.Popen(
        [sys.executable, *modules, "-m", *PYTEST, *arguments],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # tests of signals must not reach this terminal
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        # What it has started would go on in the copy.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return TOO_LONG, f"more than {limit} s"
    return process.returncode, output


def verdict(root: Path, fault: Fault) -> str:
    """Return what the tests say of a fault; the copy is as before afterwards."""
    before = {edit.file: (root / edit.file).read_bytes() for edit in fault.edits}
    for edit in fault.edits:
        edit.apply(root)
    status, output = PASSED, ""
    # Each in a process of its own: pytest imports all files that it is given first.
    for tests in filter(None, (fault.tests, *fault.then)):
        status, output = run_tests(root, tests, limit=LIMIT_SECONDS)
        if status != PASSED:
            break
    for file, content in before.items():
        (root / file).write_bytes(content)
    if status not in (PASSED, FAILED) and not fault.then:
        return f"STOPS THE TESTS, status {status}: {output[-2000:]}"
    return SURVIVES if status == PASSED else FOUND


def check_passed(status: int, output: str) -> None:
    """End here unless the tests pass without a fault."""
    if status != PASSED:
        sys.exit(f"the tests have to pass without a fault:\n{output[-4000:]}")


def check_without_fault(root: Path, faults: Sequence[Fault]) -> Sequence[Fault]:
    """Return the faults whose tests pass in an unchanged copy; end here where one fails."""
    tests = {test for fault in faults for test in fault.tests}
    check_passed(*run_tests(root, sorted(tests)))
    return faults


def missed_faults(root: Path, faults: Sequence[Fault]) -> list[str]:
    """Return the names of the faults that the tests miss; print what they say of each."""
    missed = []
    for fault in faults:
        started = time.monotonic()
        said = verdict(root, fault)
        if said != FOUND:
            missed.append(fault.name)
        seconds = time.monotonic() - started
        print(f"{said} ({seconds:.0f} s): {fault.name}", flush=True)
    return missed


def main(words: Sequence[str]) -> None:
    """Try the faults that the words name; all without any."""
    faults = [one for one in read_faults() if not words or one.is_meant_by(words)]
    if not faults:
        sys.exit(f"no fault is named {' or '.join(words)}")
    try_faults(faults)


def try_faults(
    faults: Sequence[Fault],
    checked: Callable[[Path, Sequence[Fault]], Sequence[Fault]] = check_without_fault,
) -> None:
    """Try faults in copies of the checkout; end with 1 where the tests miss one.

    ``checked`` runs their tests without a fault, and may state more of each fault.
    """
    cores = os.cpu_count() or 1
    with TemporaryDirectory(prefix="mutants.") as name:
        copies = [Path(name, str(number)) for number in range(cores)]
        copy_checkout(copies[0])
        tried = checked(copies[0], faults)
        for copy in copies[1:]:
            shutil.copytree(copies[0], copy)
        shares = [tried[number::cores] for number in range(cores)]
        with ThreadPoolExecutor(cores) as pool:
            missed = [*chain.from_iterable(pool.map(missed_faults, copies, shares))]
    print(f"{len(faults) - len(missed)} of {len(faults)} faults were found")
    if missed:
        sys.exit("not found:\n" + "\n".join(f"  {name}" for name in missed))


if __name__ == "__main__":
    main(sys.argv[1:])
