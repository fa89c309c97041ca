"""A small training in a checkout whose profiles are for the tests' Slurm."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.support import tiny
from tests.support.checkout import Checkout, Done, check_out
from tests.support.slurm import Slurm

MODEL = "results/demo_en_fr/models/demo/seed1/model.safetensors"

# Questions that one of many users would mind, but a test would wait for. A limit of submissions by
# the minute would have Snakemake stay until that minute is over (docs/operations.md).
BY_THE_SECOND = {"max-jobs-per-timespan": "10/1s"}
SETTINGS: dict[str, dict[str, Any]] = {
    "slurm": BY_THE_SECOND | {"slurm-init-seconds-before-status-checks": 1},
    "generic": BY_THE_SECOND | {"seconds-between-status-checks": 1},
}


def set_up_profiles(folder: Path) -> None:
    """Write what this cluster needs into the profiles, as a user does for theirs."""
    for name, settings in SETTINGS.items():
        path = folder / "profiles" / name / "profile.yaml"
        profile = yaml.safe_load(path.read_text("utf-8"))
        path.write_text(yaml.safe_dump(profile | settings), "utf-8")


def run(slurm: Slurm, checkout: Checkout, command: str) -> Done:
    """Run a command line there, on that cluster; fails where it fails."""
    done = checkout.shell(command, slurm.environment)
    assert done.code == 0, f"{done.said}\n{slurm.logs()}"
    return done


def submitted(slurm: Slurm, said: str, facts: str) -> list[list[str]]:
    """What Slurm knows of each job that a run submitted, in the words of squeue's --format."""
    numbers = re.findall(r"(?:SLURM|external) jobid '?(\d+)", said)
    query = ["squeue", "-h", "--states=all", "-o", facts, "-j"]
    return [slurm.ask(*query, number).split() for number in numbers]


def training(
    root: Path, parent: Path, recipe: dict[str, Any] | None = None, **options: Any
) -> Checkout:
    """Return a checkout whose demo is a prepared task of no size, with a training of seconds.

    ``recipe`` changes the training, ``options`` are of config.yaml.
    """
    checkout = check_out(root, parent)
    set_up_profiles(checkout.folder)
    tiny.prepare(checkout / "results/demo_en_fr")
    checkout.write("results/demo_en_fr/vocabulary/codes", "#version: 0.2\n")  # its words are whole
    given = tiny.settings(**{"maximum_epochs": 2, "checkpoint_minutes": 0.01} | (recipe or {}))
    settings = json.loads(given.model_dump_json(include={"architecture", "training"}))
    overrides = {"models": {"demo": settings}}
    checkout.configure({"device": "cpu", "cores": 1, "overrides": overrides} | options)
    return checkout
