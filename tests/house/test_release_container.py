"""The container, without an engine to build it: what can be held of the Dockerfile, and of its use.

Nothing here builds or runs an image.
"""

import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import yaml

from tests.house.test_release_make import inherited
from tests.support.checkout import Checkout

# What Snakemake asks of apptainer; the job then runs here, with the image's name written down.
_APPTAINER = """\
[ "$1" = --version ] && { echo "apptainer version 1.3.0"; exit; }
until [ "${1%.sif}" != "$1" ]; do shift; done
echo "$1" >> images
shift
exec "$@"
"""


def stated(root: Path, instruction: str) -> list[str]:
    """What follows an instruction of the Dockerfile, each time, with its lines joined."""
    text = (root / "Dockerfile").read_text("utf-8")
    joined = re.sub(r" *\\\n *", " ", text)
    return re.findall(rf"^{instruction} (.*)$", joined, re.MULTILINE)


def test_the_python_is_that_of_the_environments_and_what_is_copied_is_enough_to_run(
    root: Path, tmp_path: Path
) -> None:
    (base,) = stated(root, "FROM")
    version = re.fullmatch(r"python:(\d+\.\d+)-slim@sha256:[0-9a-f]{64}", base)
    assert version
    for environment in (root / "envs").glob("*.yaml"):
        installed = yaml.safe_load(environment.read_text("utf-8"))["dependencies"]
        assert f"python ={version[1]}" in installed
    lines = (root / ".dockerignore").read_text("utf-8").splitlines()
    ignored = [line for line in lines if line and not line.startswith("#")]
    assert {".git", ".venv", "results", "data", "config.local.yaml"} <= set(ignored)
    folder = tmp_path / "image"
    for source in (word for text in stated(root, "COPY") for word in text.split()[:-1]):
        assert not any(fnmatch(source, pattern) for pattern in ignored), source
        place = folder / source
        place.parent.mkdir(parents=True, exist_ok=True)
        if (root / source).is_dir():
            shutil.copytree(root / source, place)
        else:
            shutil.copy(root / source, place)
    (install,) = (text for text in stated(root, "RUN") if "make .venv" in text)
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
    checkout.write("convs2s.sif", "")
    target = "results/demo_en_fr/corpus/raw/test.source.zst"
    typed = f"snakemake --cores 1 --sdm apptainer --config container=convs2s.sif -- {target}"
    environment = checkout.with_programs(apptainer=_APPTAINER)
    done = checkout.typed(typed, environment).succeeded()
    assert (checkout / target).is_file()
    images = checkout.read("images").split()
    assert images == ["convs2s.sif"] * sum(done.planned.values())
