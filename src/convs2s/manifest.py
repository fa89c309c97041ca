"""What made a number: versions, code revision, machine."""

import platform
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from convs2s import __version__
from convs2s.files.checksums import sha256

PACKAGES = ("torch", "numpy", "sacremoses", "subword-nmt", "eflomal", "sacrebleu", "snakemake")


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
    return {**stated, "sha256": {path: sha256(path) for path in inputs}, **manifest()}


def revision(root: Path) -> str | None:
    """Return the git revision of a checkout, with a ``+`` if it has local changes, else None.

    What rules/from_git.smk has taken from a commit says in a file which one that was.
    """
    if (root / ".revision").is_file():
        return (root / ".revision").read_text("utf-8")
    if not (root / ".git").exists():
        return None
    commands = (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
    answers = []
    for command in commands:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *command], capture_output=True, text=True
            )
        except OSError:  # a container, or a node of a cluster, without the program
            return None
        if done.returncode != 0:
            return None
        answers.append(done.stdout.strip())
    return answers[0] + ("+" if answers[1] else "")


def processor() -> str:
    """Return the name of this machine's processor."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
