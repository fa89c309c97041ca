"""What made a number: versions, code revision, machine."""

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from convs2s import __version__
from convs2s.errors import failures_of_file
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
    """Return what a number rests on: what is stated, its inputs' checksums, and the machine.

    ``weights`` are checksums of the weights alone of those inputs that are model files.
    """
    torch: Any = sys.modules.get("torch")
    checksums = {path: sha256(path) for path in inputs}
    weights = {path: weights_sha256(path) for path in checksums if path.endswith(".safetensors")}
    made = {**stated, "sha256": checksums, "weights": weights, **manifest()}
    if torch and torch.cuda.is_initialized():
        made["gpu"] = torch.cuda.get_device_name()
    return made


def weights_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a model's weights: of each one's name, type, shape and numbers.

    The file holds more, such as vocabularies, the dictionary of aligned words and what the training
    says of itself: two files may differ in that alone. The table of candidates of a model that
    selects its vocabulary is of integers, and left out as well. A UserError: no such file.
    """
    digest = hashlib.sha256()
    # The format: the header's size in 8 bytes, the header in JSON, the numbers of all tensors.
    with Path(path).open("rb") as stream, failures_of_file(str(path), "no model file"):
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
        start = stream.tell()
        for name in sorted(header.keys() - {"__metadata__"}):
            tensor = header[name]
            if "F" in tensor["dtype"]:  # F32, F16, BF16, F64
                first, end = tensor["data_offsets"]
                digest.update(f"{name} {tensor['dtype']} {tensor['shape']}\n".encode())
                stream.seek(start + first)
                digest.update(stream.read(end - first))
    return digest.hexdigest()


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
        for line in information.read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if value:
                stated[name.strip()] = value.strip()
    flags = stated.get("flags", stated.get("Features", "")).split()
    widest = next((name for flag, name in INSTRUCTION_SETS.items() if flag in flags), None)
    library = None
    with suppress(metadata.PackageNotFoundError):
        library = f"torch {metadata.version('torch')}"
    model = stated.get("model name") or platform.processor()
    return ", ".join(filter(None, (model, widest, library)))
