"""The file of hashes is of the versions that ``constraints.txt`` pins, each of them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from packaging.utils import canonicalize_name

from tests.support.bare_python import closure

PIN = re.compile(
    r"^([\w.-]+)==(\S+)(?: ; (?:sys_platform (==|!=) \"linux\"|python_full_version < '3.13'))?"
    r"((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$",
    re.MULTILINE,
)

OF_EXTRAS = {"eflomal", "cython"}
"""What only an extra installs that no table of the paper needs."""


def pinned(root: Path) -> dict[str, str]:
    """Return the version of each package that ``constraints.txt`` pins."""
    constraints = (root / "constraints.txt").read_text("utf-8")
    pins = re.findall(r"^([^#\s=]+)==(\S+)$", constraints, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def hashed(root: Path) -> list[tuple[str, str, str, set[str]]]:
    """Return name, version, "==" or "!=" Linux, and hashes of each pin; nothing else is there."""
    text = (root / "requirements.hashed.txt").read_text("utf-8")
    comment, rest = text.split("\n", 1)
    assert comment.startswith("# ")
    assert PIN.sub("", rest).strip() == ""
    return [
        (name, version, sign, set(re.findall(r"sha256:(\w+)", hashes)))
        for name, version, sign, hashes in PIN.findall(rest)
    ]


def test_every_pin_has_hashes_and_nothing_else_and_torch_on_linux_those_without_cuda(
    root: Path,
) -> None:
    pins = pinned(root)
    assert len(pins) > 100
    expected = {(name, pins[name]) for name in pins.keys() - OF_EXTRAS}
    stated = [(name, version) for name, version, _, _ in hashed(root)]
    version = pins["torch"]
    assert sorted(stated) == sorted([*expected, ("torch", version)])
    text = (root / ".ci/torch_cpu.sha256").read_text()
    known = re.findall(r"^(\w+)  (\S+)$", text, re.MULTILINE)
    digests = {sign: found for name, _, sign, found in hashed(root) if name == "torch"}
    for (_, file), python in zip(known, ("cp311", "cp312", "cp313"), strict=True):
        assert file.startswith(f"torch-{version}+cpu-{python}-{python}-manylinux")
    assert digests["=="] == {digest for digest, _ in known}
    assert not digests["=="] & digests["!="]


_STAND_IN = """#!/bin/sh
case "$*" in
    "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python; cp "$0" .venv/bin/uv ;;
    *) echo "$(basename "$0") $*" ; for last in "$@"; do :; done ;;
esac
[ ! -f "$last" ] || cp "$last" "$(basename "$last")"
"""


def test_the_script_installs_by_checksums_alone(root: Path, tmp_path: Path) -> None:
    """By stand-ins for Python, pip and uv, which keep what they are asked to install."""
    (tmp_path / ".ci").mkdir()
    for name in (".ci/install", "requirements.hashed.txt"):
        shutil.copy(root / name, tmp_path / name)
    stand_in = tmp_path / "python"
    stand_in.write_text(_STAND_IN)
    stand_in.chmod(0o755)
    variables = {**os.environ, "PYTHON": str(stand_in)}
    done = subprocess.run(
        [tmp_path / ".ci/install"], env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".venv/.installed").is_file()
    (by_pip, by_uv, package) = done.stdout.splitlines()
    assert by_pip.startswith("python -m pip install ")
    assert by_uv.startswith("uv pip install ")
    assert " --torch-backend cpu " in by_uv
    for line in (by_pip, by_uv):
        assert re.search(" --no-deps .*--require-hashes ", line), line
    assert package.endswith(" --no-deps --no-build-isolation -e .")
    hashes = (root / "requirements.hashed.txt").read_text("utf-8")
    found = (tmp_path / "all.txt").read_text("utf-8")
    assert found.count("+cpu") == 1
    assert re.search(
        r"^torch==[\d.]+\+cpu ; sys_platform == .linux.", found, re.MULTILINE
    )
    assert found.replace("+cpu", "") == hashes
    first = re.split(r"^(?=uv)", (tmp_path / "first.txt").read_text(), flags=re.M)
    assert [one.partition("==")[0] for one in first] == ["setuptools", "uv"]
    assert all(one in hashes for one in first)


def test_every_package_that_an_install_brings_is_pinned(root: Path) -> None:
    found = closure(["convs2s[workflow,dev]"])
    assert {"torch", "snakemake", "setuptools"} <= found
    missing = found - pinned(root).keys() - {"convs2s"}
    # Torch's build is left open.
    of_cuda = ("nvidia-", "cuda-", "triton")
    assert [name for name in missing if not name.startswith(of_cuda)] == []
