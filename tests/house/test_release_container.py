"""The container, without an engine to build it: what can be held of the Dockerfile, and of its use.

Nothing here builds or runs an image.
"""

import os
import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.support.checkout import Checkout, check_out

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


def copied(dockerfile: list[list[str]]) -> list[str]:
    """Return the files and folders that go into the image."""
    return [word for text in of(dockerfile, "COPY") for word in text.split()[:-1]]


def test_what_is_copied_exists_and_is_not_ignored(
    root: Path, dockerfile: list[list[str]]
) -> None:
    lines = (root / ".dockerignore").read_text("utf-8").splitlines()
    ignored = [line for line in lines if line and not line.startswith("#")]
    for source in copied(dockerfile):
        assert (root / source).exists(), source
        assert not any(fnmatch(source, pattern) for pattern in ignored), source
    assert {".git", ".venv", "results", "data", "config.local.yaml"} <= set(ignored)


def test_the_python_is_that_of_the_environments(
    root: Path, dockerfile: list[list[str]]
) -> None:
    (base,) = of(dockerfile, "FROM")
    version = re.fullmatch(r"python:(\d+\.\d+)-slim@sha256:[0-9a-f]{64}", base)
    assert version
    for environment in (root / "envs").glob("*.yaml"):
        stated = yaml.safe_load(environment.read_text("utf-8"))["dependencies"]
        assert f"python ={version[1]}" in stated


def test_the_project_is_installed_with_an_extra_that_it_has(
    root: Path, dockerfile: list[list[str]]
) -> None:
    assert of(dockerfile, "ARG") == ["TORCH=cpu"]
    (install,) = (text for text in of(dockerfile, "RUN") if "make .venv" in text)
    assert "make .venv/.installed TORCH=$TORCH EXTRAS=workflow" in install
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert "workflow" in project["optional-dependencies"]
    assert of(dockerfile, "CMD") == ['["convs2s", "--help"]']


def test_what_is_copied_is_enough_to_run(
    root: Path, dockerfile: list[list[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "image"
    for source in copied(dockerfile):
        place = folder / source
        place.parent.mkdir(parents=True, exist_ok=True)
        if (root / source).is_dir():
            shutil.copytree(root / source, place)
        else:
            shutil.copy(root / source, place)
    arguments = ["make", "-n", ".venv/.installed", "TORCH=cpu", "EXTRAS=workflow"]
    outer = ("MAKE", "MFLAGS")  # what `make test` hands down
    variables = {
        name: text for name, text in os.environ.items() if not name.startswith(outer)
    }
    said = subprocess.check_output(arguments, cwd=folder, env=variables, text=True)
    assert "-e '.[workflow]'" in said
    done = Checkout(folder).snakemake("--dry-run", "demo").succeeded()
    assert done.planned["train_model"] == 2


def test_each_job_runs_in_the_image_that_the_configuration_names(
    root: Path, tmp_path: Path
) -> None:
    checkout = check_out(root, tmp_path)
    checkout.write("programs/apptainer", _APPTAINER).chmod(0o755)
    checkout.write("convs2s.sif", "")
    target = "results/demo_en_fr/corpus/raw/test.source.zst"
    asked = f"snakemake --cores 1 --sdm apptainer --config container=convs2s.sif -- {target}"
    done = checkout.shell(f'PATH="$PWD/programs:$PATH" {asked}').succeeded()
    assert (checkout / target).is_file()
    images = (checkout / "images").read_text("utf-8").split()
    assert images == ["convs2s.sif"] * sum(done.planned.values())
    # Without an image, no job asks for one.
    asked = "snakemake --sdm apptainer -n -- results/demo_en_fr/bleu.txt"
    checkout.shell(f'PATH="$PWD/programs:$PATH" {asked}').succeeded()
