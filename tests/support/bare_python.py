"""A Python that has only some of the packages that the tests run with."""

import os
import subprocess
import sysconfig
import venv
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def bare_python(folder: Path, requirements: Iterable[str]) -> Path:
    """Make a virtual environment of links to installed packages; return its Python.

    Whatever its Python starts by ``sys.executable`` has no other packages either. What the
    requirements, as pip takes them, require in turn is there, too.
    """
    venv.create(folder, symlinks=True)
    places = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", places))
    for name in closure(requirements):
        files = metadata.files(name) or []
        # Its folders and files at the top of site-packages.
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            installed = Path(str(metadata.distribution(name).locate_file(top)))
            if not (packages / top).is_symlink():
                (packages / top).symlink_to(installed)
    return folder / "bin" / "python"


def run_bare(
    python: Path, *arguments: str, folder: Path, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run such a Python in a folder, and let no variable add packages; it reads `text`."""
    return subprocess.run(
        [python, *arguments],
        cwd=folder,
        env=without_pythonpath(),
        input=text,
        capture_output=True,
        encoding="utf-8",
    )


def without_pythonpath() -> dict[str, str]:
    """Return the environment less the variable that adds packages to every Python."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the distributions that requirements lead to, extras and markers heeded.

    Those that are not installed here are left out: builds of one package differ in what they need.
    """
    pending = [*map(Requirement, requirements)]
    seen = set[tuple[str, str]]()
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        try:
            required = [*map(Requirement, metadata.requires(name) or [])]
        except metadata.PackageNotFoundError:
            continue
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                for one in required:
                    if one.marker is None or one.marker.evaluate({"extra": extra}):
                        pending.append(one)
    return {name for name, _ in seen}
