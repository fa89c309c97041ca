"""Where one may read alone, each command ends in one line that says so."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.config.identity import training_settings
from convs2s.training.run import train
from tests.support import tiny
from tests.support.checkout import check_out
from tests.support.limits import as_reader, read_only
from tests.support.systems import READS_PROC

pytestmark = READS_PROC  # setpriv is of Linux


def said_by(folder: Path, *arguments: str | Path) -> list[str]:
    """Return the lines of a command that fails where nothing can be written."""
    command = as_reader(sys.executable, "-m", *map(str, arguments))
    with read_only(folder):
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False
        )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return [line for line in done.stderr.splitlines() if "error: " in line]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a finished training, and the settings of a model."""
    results = tmp_path_factory.mktemp("trained")
    tiny.prepare(results / "tiny")
    train(tiny.job(results / "tiny", results / "tiny/models/m/seed1/model.safetensors"))
    settings = results / "tiny/models/m/settings.json"
    settings.write_text(json.dumps(training_settings(tiny.settings())))
    (settings.parent / "seed2").mkdir()
    return results


@pytest.mark.parametrize("run", ["seed1", "seed2"])
def test_a_training(trained: Path, run: str) -> None:
    models = trained / "tiny/models/m"
    options = ["--settings", f"{models}/settings.json", "--device", "cpu"]
    options += ["--output", f"{models}/{run}/model.safetensors"]
    (line,) = said_by(trained, "convs2s", "train", trained / "tiny", *options)
    assert line.startswith(f"convs2s: error: {models}/{run}/state")
    assert "cannot be written: Permission denied" in line


def test_states_that_are_to_be_removed(trained: Path) -> None:
    (line,) = said_by(trained, "convs2s", "remove-states", trained, "--yes")
    assert line.startswith(f"convs2s: error: {trained}/tiny/models/m/seed1/state")
    assert "cannot be removed: Permission denied" in line


@pytest.mark.parametrize("is_plan", [True, False])
def test_the_workflow(root: Path, tmp_path: Path, is_plan: bool) -> None:
    folder = check_out(root, tmp_path).folder
    plan = ["-n"] if is_plan else []
    (line,) = said_by(folder, "snakemake", "--cores", "1", *plan)
    assert line.startswith(
        f"error: {folder}/.snakemake: cannot be written: Permission denied: "
    )
