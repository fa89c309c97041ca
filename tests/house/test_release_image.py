"""The image itself, built without an engine's daemon (docs/container.md): it runs the demo."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = ("buildah", "debootstrap")
BASE = "localhost/python:3.11-slim"
PACKAGES = "--include=python3,python3-venv,ca-certificates"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
CHROOT = ("--isolation", "chroot")


def typed(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    return done.stdout


@pytest.mark.slow
def test_the_image_runs_the_demo_and_translates(root: Path, tmp_path: Path) -> None:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root, and {' and '.join(PROGRAMS)}")

    def buildah(*arguments: str | Path) -> str:
        """Run a command with a store of the test's own, so that the machine's is as before."""
        stores = ("--root", tmp_path / "images", "--runroot", tmp_path / "run")
        return typed("buildah", *stores, *arguments)

    # What the Dockerfile begins with is made of Debian 12, which has Python 3.11. It trusts whom
    # this machine trusts, and its pip is set as pip is here by variables.
    debian = tmp_path / "debian"
    typed("debootstrap", "--variant=minbase", PACKAGES, "bookworm", debian)
    shutil.copyfile(f"/{CERTIFICATES}", debian / CERTIFICATES)
    container = buildah("from", "scratch").strip()
    buildah("add", "--quiet", container, debian, "/")
    folders = []
    for name, value in os.environ.items():
        if name.startswith("PIP_"):
            buildah("config", "--env", f"{name}={value}", container)
            if value.startswith("/") and Path(value).is_dir():
                folders.append(f"--volume={value}:{value}:ro")
    buildah("commit", "--quiet", container, BASE)
    buildah("rm", container)
    tag = ("--pull-never", "--from", BASE, *folders, "--tag", "convs2s")
    buildah("build", *CHROOT, *tag, root)
    container = buildah("from", "--pull-never", "localhost/convs2s").strip()
    said = buildah("run", *CHROOT, container, "--", "make", "demo")
    assert "test detokenized BLEU" in said
    model = "results/demo_en_fr/models/demo/seed1/model.safetensors"
    shell = f'echo "The man sees two red cars." | convs2s translate {model}'
    assert buildah("run", *CHROOT, container, "--", "sh", "-c", shell).split()
