"""The file of hashes is of the versions that ``constraints.txt`` pins, each of them."""

import re
from pathlib import Path

PIN = re.compile(r"^([\w.-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


NEED_A_COMPILER = {"eflomal", "Cython"}
"""What only an extra installs, from source."""


def canonical(name: str) -> str:
    """Return a package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def hashed(root: Path) -> dict[str, tuple[str, set[str]]]:
    """Return version and hashes by package, of a file that holds nothing else."""
    text = (root / "requirements.hashed.txt").read_text("utf-8")
    comment, rest = text.split("\n", 1)
    assert comment.startswith("# ")
    assert PIN.sub("", rest).strip() == ""
    return {
        name: (version, set(re.findall(r"sha256:(\w+)", hashes)))
        for name, version, hashes in PIN.findall(rest)
    }


def test_every_pin_has_hashes_and_nothing_else_has(root: Path) -> None:
    constraints = (root / "constraints.txt").read_text("utf-8")
    pins = dict(re.findall(r"^([^#\s=]+)==(\S+)$", constraints, re.MULTILINE))
    assert len(pins) > 100
    assert pins.keys() >= NEED_A_COMPILER
    pins = {name: version for name, version in pins.items() if name not in NEED_A_COMPILER}
    stated = {name: version for name, (version, _) in hashed(root).items()}
    assert stated == {canonical(name): version for name, version in pins.items()}


def test_torch_without_cuda_is_among_them(root: Path) -> None:
    version, hashes = hashed(root)["torch"]
    known = [line.split("  ") for line in (root / ".ci/torch_cpu.sha256").read_text().splitlines()]
    assert [file for _, file in known] == [
        f"torch-{version}+cpu-{python}-{python}-manylinux_2_28_x86_64.whl"
        for python in ("cp311", "cp312", "cp313")
    ]
    assert {digest for digest, _ in known} < hashes
