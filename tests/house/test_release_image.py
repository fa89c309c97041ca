"""The image itself, built without an engine's daemon (docs/container.md): it runs the demo."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

PROGRAMS = ("buildah", "debootstrap")
BASE = "docker.io/library/python:3.11-slim"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


class Buildah:
    """A store of images of the test's own, so that the machine's is as before."""

    def __init__(self, folder: Path) -> None:
        self.options = [
            "--root",
            str(folder / "images"),
            "--runroot",
            str(folder / "run"),
        ]

    def __call__(self, command: str, *arguments: str | Path) -> str:
        """Run a command of buildah; return what it prints."""
        return self._run(["buildah", *self.options, command, *map(str, arguments)])

    @staticmethod
    def _run(command: Sequence[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (
            f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )
        return done.stdout

    def make_base(self, folder: Path) -> None:
        """Make what the Dockerfile begins with of Debian 12, which has Python 3.11.

        It trusts whom this machine trusts, and its pip is set as pip is here by variables.
        """
        packages = "--include=python3,python3-venv,ca-certificates"
        self._run(
            ["debootstrap", "--variant=minbase", packages, "bookworm", str(folder)]
        )
        shutil.copyfile(f"/{CERTIFICATES}", folder / CERTIFICATES)
        container = self("from", "scratch").strip()
        self("add", "--quiet", container, folder, "/")
        for name, value in variables_of_pip().items():
            self("config", "--env", f"{name}={value}", container)
        self("commit", "--quiet", container, BASE)
        self("rm", container)


def variables_of_pip() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name.startswith("PIP_")
    }


@pytest.mark.slow
def test_the_image_runs_the_demo_and_translates(root: Path, tmp_path: Path) -> None:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root, and {' and '.join(PROGRAMS)}")
    buildah = Buildah(tmp_path)
    buildah.make_base(tmp_path / "debian")
    places = [
        Path(value) for value in variables_of_pip().values() if value.startswith("/")
    ]
    folders = [f"--volume={place}:{place}:ro" for place in places if place.is_dir()]
    settings = ["--isolation", "chroot"]
    buildah("build", *settings, "--pull-never", *folders, "--tag", "convs2s", root)
    container = buildah("from", "--pull-never", "localhost/convs2s").strip()
    said = buildah("run", *settings, container, "--", "make", "demo")
    assert "test detokenized BLEU" in said
    model = "results/demo_en_fr/models/demo/seed1/model.safetensors"
    typed = f'echo "The man sees two red cars." | convs2s translate {model}'
    assert buildah("run", *settings, container, "--", "sh", "-c", typed).split()
