"""What made a number: versions, code revision, machine."""

import platform
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from convs2s import __version__
from convs2s.files.checksums import sha256

PACKAGES = (
    "torch",
    "onnxruntime",
    "numpy",
    "sacremoses",
    "subword-nmt",
    "eflomal",
    "sacrebleu",
    "snakemake",
)

INSTRUCTION_SETS = {
    "amx_bf16": "AMX bf16",
    "avx512_bf16": "AVX-512 bf16",
    "avx512f": "AVX-512",
    "avx2": "AVX2",
    "sve": "SVE",
    "asimd": "NEON",
}
"""Flag of Linux -> the instruction set, the widest first."""


def manifest() -> dict[str, object]:
    """Return the versions, the git revision (with ``+`` if files differ) and the processor."""
    versions: dict[str, str | None] = dict.fromkeys(PACKAGES)
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "convs2s": __version__,  # a job finds this package by its path, installed or not
        "python": platform.python_version(),
        "packages": versions,
        "revision": revision(Path(__file__).resolve().parents[2]),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def run_manifest(inputs: Iterable[str], **stated: object) -> dict[str, object]:
    """Return what a number rests on: what is stated, its inputs' checksums, and the machine."""
    torch: Any = sys.modules.get("torch")
    gpu = {"gpu": torch.cuda.get_device_name()} if torch and torch.cuda.is_initialized() else {}
    return {**stated, "sha256": {path: sha256(path) for path in inputs}, **manifest(), **gpu}


def revision(root: Path) -> str | None:
    """Return the git revision of a checkout, with a ``+`` if it has local changes, else None.

    What rules/from_git.smk has taken from a commit says in a file which one that was.
    """
    if (root / ".revision").is_file():
        return (root / ".revision").read_text("utf-8")
    if not (root / ".git").exists():
        return None
    # By its hash, whatever tags there are.
    command = ["describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+"]
    try:
        done = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True)
    except OSError:  # a container, or a node of a cluster, without the program
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def processor(information: Path = Path("/proc/cpuinfo")) -> str:
    """Return what rounds here: processor, its widest instruction set, and torch with its build.

    Two machines of which one differs may give two results of one training. The list is the
    kernel's; what it does not tell is left out.
    """
    stated = {}
    if information.is_file():
        lines = (line.partition(":") for line in information.read_text("utf-8").splitlines())
        stated = {name.strip(): value.strip() for name, _, value in lines if value}
    flags = stated.get("flags", stated.get("Features", "")).split()
    widest = next((name for flag, name in INSTRUCTION_SETS.items() if flag in flags), None)
    library = None
    with suppress(metadata.PackageNotFoundError):
        library = f"torch {metadata.version('torch')}"
    model = stated.get("model name") or platform.processor()
    return ", ".join(filter(None, (model, widest, library)))
