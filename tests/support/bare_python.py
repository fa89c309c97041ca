"""A Python that has only some of the packages that the tests run with."""

import os
import subprocess
import sysconfig
import venv
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def bare_python(folder: Path, requirements: Iterable[str]) -> Path:
    """Make a virtual environment of links to installed packages; return its Python.

    Whatever its Python starts by ``sys.executable`` has no other packages either.

    Args:
        folder: where the environment goes.
        requirements: as pip takes them; what they require in turn is there, too.
    """
    venv.create(folder, symlinks=True)
    places = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", places))
    for installed in {
        path for name in closure(requirements) for path in _installed(name)
    }:
        packages.joinpath(installed.name).symlink_to(installed)
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
        check=False,
    )


def without_pythonpath() -> dict[str, str]:
    """Return the environment less the variable that adds packages to every Python."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the distributions that requirements lead to, extras and markers heeded.

    Those that are not installed here are left out: builds of one package differ in what they need.
    """
    pending = [Requirement(text) for text in requirements]
    seen = set[tuple[str, str]]()
    while pending:
        requirement = pending.pop()
        for extra in ("", *requirement.extras):
            one = canonicalize_name(requirement.name), extra
            if one not in seen and _distribution(one[0]):
                seen.add(one)
                pending += _required(*one)
    return {name for name, _ in seen}


def _required(name: str, extra: str) -> Iterator[Requirement]:
    for requirement in map(Requirement, metadata.requires(name) or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _installed(name: str) -> Iterator[Path]:
    """Yield a distribution's folders and files at the top of site-packages."""
    distribution = metadata.distribution(name)
    tops = {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}
    yield from (Path(str(distribution.locate_file(top))) for top in tops)
