"""The package as users get it: its wheel and source archive, built without the network."""

import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from pathlib import Path

from tests.support.bare_python import bare_python, without_pythonpath
from tests.support.checkout import check_out

REPOSITORY_URL = "https://example.org/owner/convs2s"

_BUILD = """
import sys
from setuptools import build_meta
folder = sys.argv[1]  # the builds put their own arguments there
build_meta.build_wheel(folder)
build_meta.build_sdist(folder)
"""


@dataclass(frozen=True)
class Release:
    """What is published.

    Attributes:
        wheel: what pip installs.
        sdist: the source archive.
    """

    wheel: Path
    sdist: Path

    def members(self) -> set[str]:
        """Return the files of the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def source_members(self) -> set[str]:
        """Return the files of the source archive, without their common folder."""
        with tarfile.open(self.sdist) as archive:
            return {name.partition("/")[2] for name in archive.getnames()}

    def metadata(self) -> Message:
        """Return what the wheel says of itself."""
        with zipfile.ZipFile(self.wheel) as archive:
            name = next(
                one for one in archive.namelist() if one.endswith("dist-info/METADATA")
            )
            return message_from_bytes(archive.read(name))

    def requirements(self) -> list[str]:
        """Return what the wheel requires without any extra."""
        required = self.metadata().get_all("Requires-Dist", [])
        return [line for line in required if "extra ==" not in line]

    def install(self, folder: Path) -> Path:
        """Install the wheel where it and what it requires are alone; return the Python."""
        python = bare_python(folder, self.requirements())
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q"]
        # An editable install leaves its metadata in src/, which a PYTHONPATH makes pip find there:
        # it would say that this version is installed already.
        subprocess.run(
            [*pip, "--no-deps", "--no-index", self.wheel],
            env=without_pythonpath(),
            check=True,
        )
        return python


def build(root: Path, folder: Path) -> Release:
    """Build both from a copy of a repository, as building leaves files in the folder."""
    checkout = check_out(root, folder)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        checkout.write(name, (root / name).read_bytes())
    built = folder / "dist"
    built.mkdir()
    command = [sys.executable, "-c", _BUILD, str(built)]
    subprocess.run(
        command,
        cwd=checkout.folder,
        env={**os.environ, "REPOSITORY_URL": REPOSITORY_URL},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    return Release(wheel, sdist)
