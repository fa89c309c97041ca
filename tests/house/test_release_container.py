"""The container, without an engine to build it: what can be held of the Dockerfile, and of its use.

Nothing here builds or runs an image.
"""

import os
import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.house.test_release_make import inherited
from tests.support.checkout import Checkout

# What Snakemake asks of apptainer; the job then runs here, with the image's name written down.
_APPTAINER = """#!/bin/bash
[ "$1" = --version ] && { echo "apptainer version 1.3.0"; exit; }
while [[ "$1" != *.sif ]]; do shift; done
echo "$1" >> images
shift
exec "$@"
"""


@pytest.fixture(scope="module")
def dockerfile(root: Path) -> list[list[str]]:
    """The words of each instruction, whose lines are joined."""
    text = (root / "Dockerfile").read_text("utf-8")
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [line.split() for line in joined.splitlines() if line.strip()]


def of(dockerfile: list[list[str]], name: str) -> list[str]:
    return [" ".join(words[1:]) for words in dockerfile if words[0] == name]


def test_the_python_is_that_of_the_environments(
    root: Path, dockerfile: list[list[str]]
) -> None:
    (base,) = of(dockerfile, "FROM")
    version = re.fullmatch(r"python:(\d+\.\d+)-slim@sha256:[0-9a-f]{64}", base)
    assert version
    for environment in (root / "envs").glob("*.yaml"):
        stated = yaml.safe_load(environment.read_text("utf-8"))["dependencies"]
        assert f"python ={version[1]}" in stated


def test_what_is_copied_is_not_ignored_and_enough_to_run(
    root: Path, dockerfile: list[list[str]], tmp_path: Path
) -> None:
    lines = (root / ".dockerignore").read_text("utf-8").splitlines()
    ignored = [line for line in lines if line and not line.startswith("#")]
    assert {".git", ".venv", "results", "data", "config.local.yaml"} <= set(ignored)
    folder = tmp_path / "image"
    for source in (
        word for text in of(dockerfile, "COPY") for word in text.split()[:-1]
    ):
        assert not any(fnmatch(source, pattern) for pattern in ignored), source
        place = folder / source
        place.parent.mkdir(parents=True, exist_ok=True)
        if (root / source).is_dir():
            shutil.copytree(root / source, place)
        else:
            shutil.copy(root / source, place)
    (install,) = (text for text in of(dockerfile, "RUN") if "make .venv" in text)
    command = "make -n .venv/.installed TORCH=$TORCH EXTRAS=workflow"
    assert command.replace("-n ", "") in install
    said = subprocess.check_output(
        command, shell=True, cwd=folder, env=inherited() | {"TORCH": "cpu"}, text=True
    )
    assert "-e '.[workflow]'" in said
    done = Checkout(folder).snakemake("--dry-run", "demo").succeeded()
    assert done.planned["train_model"] == 2


def test_each_job_runs_in_the_image_that_the_configuration_names(
    checkout: Checkout,
) -> None:
    checkout.write("programs/apptainer", _APPTAINER).chmod(0o755)
    checkout.write("convs2s.sif", "")
    target = "results/demo_en_fr/corpus/raw/test.source.zst"
    typed = f"snakemake --cores 1 --sdm apptainer --config container=convs2s.sif -- {target}"
    path = f"{checkout.folder}/programs{os.pathsep}{os.environ['PATH']}"
    done = checkout.typed(typed, {**os.environ, "PATH": path}).succeeded()
    assert (checkout / target).is_file()
    images = checkout.read("images").split()
    assert images == ["convs2s.sif"] * sum(done.planned.values())
