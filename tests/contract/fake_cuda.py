"""A GPU whose tensors have shapes and no numbers: what it would be told to do is counted.

``counted`` runs cases in a process of its own, as torch's device registry is the process's, and
returns their figures:

    python -m tests.contract.fake_cuda HOOKS.so '[{"model": "wmt14_en_fr", "tokens": 4000}]'
"""

import ctypes
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("fake_cuda.cpp")

Figures = dict[str, Any]


def build_hooks(folder: Path) -> Path:
    """Compile what a build of torch without CUDA lacks; return the library."""
    torch = Path(str(distribution("torch").locate_file("torch")))
    library = folder / "fake_cuda.so"
    options = ["-std=c++20", "-shared", "-fPIC", f"-I{torch}/include"]
    linked = [f"-L{torch}/lib", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{torch}/lib"]
    command = ["g++", *options, str(SOURCE), "-o", str(library), *linked]
    subprocess.run(command, check=True, capture_output=True)
    return library


def counted(hooks: Path, cases: Sequence[Mapping[str, Any]]) -> list[Figures]:
    """Return the figures of each case: the arguments of ``fake_updates.figures_of``."""
    program = [sys.executable, "-m", "tests.contract.fake_cuda"]
    command = [*program, str(hooks), json.dumps(cases)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    found: list[Figures] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)  # before torch
    from tests.contract.fake_updates import figures_of

    print(json.dumps([figures_of(**case) for case in json.loads(sys.argv[2])]))
