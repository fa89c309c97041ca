"""Records of how a number was made: versions, revision of the code, machine and input files."""

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from convs2s import __version__
from convs2s.errors import failures_of_file
from convs2s.files.checksums import sha256

# The packages whose versions are recorded.
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
"""Flag in /proc/cpuinfo -> name of the instruction set; the widest comes first."""


def manifest() -> dict[str, object]:
    """Return the versions of the programs, the git revision of the code, and the machine."""
    return {
        # Not from importlib.metadata, because jobs may import the package without installing it.
        "convs2s": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "revision": revision(Path(__file__).resolve().parents[2]),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def run_manifest(inputs: Iterable[str], **stated: object) -> dict[str, object]:
    """Return the record of a number that was computed from the files ``inputs``.

    Its keys are those of ``stated``, those of ``manifest`` and these:

    - ``sha256``: path -> checksum of each input.
    - ``weights``: path -> checksum of the weights alone (``weights_sha256``) of each input that is
      a model file.
    - ``gpu``: the name of the GPU, if this process has used one.
    """
    # If torch was not imported, no GPU was used.
    torch: Any = sys.modules.get("torch")
    checksums = {path: sha256(path) for path in inputs}
    models = [path for path in checksums if path.endswith(".safetensors")]
    weights = {path: weights_sha256(path) for path in models}
    record = {**stated, "sha256": checksums, "weights": weights, **manifest()}
    if torch and torch.cuda.is_initialized():
        record["gpu"] = torch.cuda.get_device_name()
    return record


def weights_sha256(path: str | Path) -> str:
    """Return the SHA-256 of the weights in a model file: their names, types, shapes and numbers.

    Two files with the same weights may differ in other content, such as the vocabularies, the
    dictionary of aligned words and the description of the training. Integer tensors are left out,
    too: they are the table of candidates of a model with vocabulary selection.

    Raises:
        UserError: the file is not a model.
    """
    digest = hashlib.sha256()
    # A safetensors file begins with the size of the header in 8 bytes and the header in JSON. The
    # numbers of all tensors follow.
    with Path(path).open("rb") as stream, failures_of_file(path, "not a model file"):
        header_size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(header_size))
        data_start = stream.tell()
        for name in sorted(header.keys() - {"__metadata__"}):
            tensor = header[name]
            if "F" in tensor["dtype"]:  # F32, F16, BF16, F64
                begin, end = tensor["data_offsets"]  # in bytes, from data_start
                digest.update(f"{name} {tensor['dtype']} {tensor['shape']}\n".encode())
                stream.seek(data_start + begin)
                digest.update(stream.read(end - begin))
    return digest.hexdigest()


def revision(root: Path) -> str | None:
    """Return the git revision of a checkout, followed by ``+`` if it has local changes.

    Return None if the folder is not a checkout or git is not installed.
    """
    if not (root / ".git").exists():
        return None
    # --exclude=* gives the hash of the commit even if the commit has tags.
    command = ["describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+"]
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *command], capture_output=True, text=True
        )
    except OSError:  # a container, or a node of a cluster, without the program
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def processor(information: Path = Path("/proc/cpuinfo")) -> str:
    """Return what determines the rounding: processor, widest instruction set, version of torch.

    On two machines that differ in one of these, the same training may give different results. The
    file ``information``, in the format of /proc/cpuinfo, tells the processor and its instruction
    sets. Unknown items are left out.
    """
    stated = {}
    if information.is_file():
        for line in information.read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if value:
                stated[name.strip()] = value.strip()
    # Linux calls the list "flags" on x86 and "Features" on ARM.
    flags = stated.get("flags", stated.get("Features", "")).split()
    supported = [name for flag, name in INSTRUCTION_SETS.items() if flag in flags]
    parts = [stated.get("model name") or platform.processor(), *supported[:1]]
    torch_version = _version("torch")
    if torch_version:
        parts.append(f"torch {torch_version}")
    return ", ".join(filter(None, parts))
