"""A small training in a checkout whose profiles are for the tests' Slurm."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support import tiny
from tests.support.checkout import Checkout, Done, check_out
from tests.workflow.slurm import Slurm

MODEL = "results/demo_en_fr/models/demo/seed1/model.safetensors"
LOG = "results/logs/demo_en_fr/demo/seed1/train.log"
TRAIN = f"snakemake {MODEL} --allowed-rules train_model write_model_settings"
"""The command of the training of ``training``, whose data no rule is to make again."""

SECONDS = 1800

# Questions that one of many users would mind, but a test would wait for. A limit of submissions by
# the minute would have Snakemake stay until that minute is over (docs/operations.md).
BY_THE_SECOND = {"max-jobs-per-timespan": "10/1s"}
SETTINGS: dict[str, dict[str, Any]] = {
    "slurm": BY_THE_SECOND | {"slurm-init-seconds-before-status-checks": 4},
    "generic": BY_THE_SECOND | {"seconds-between-status-checks": 1},
}


def set_up_profiles(folder: Path) -> None:
    """Write what this cluster needs into the profiles, as a user does for theirs."""
    for name, settings in SETTINGS.items():
        path = folder / "profiles" / name / "profile.yaml"
        profile = yaml.safe_load(path.read_text("utf-8"))
        path.write_text(yaml.safe_dump(profile | settings), "utf-8")


def check_out_here(root: Path, parent: Path) -> Checkout:
    """Return the workflow as it stands, with nothing run and profiles for this cluster."""
    checkout = check_out(root, parent)
    set_up_profiles(checkout.folder)
    return checkout


def run(slurm: Slurm, checkout: Checkout, command: str) -> Done:
    """Run a command line there, on that cluster; fails where it fails."""
    done = checkout.typed(command, _environment(slurm))
    assert done.code == 0, f"{done.said}\n{slurm.logs()}"
    return done


def _environment(slurm: Slurm) -> dict[str, str]:
    """That cluster's, with the programs of these tests found first."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}"
    return slurm.environment | {"PATH": programs + slurm.environment["PATH"]}


def submitted(slurm: Slurm, said: str, facts: str) -> list[list[str]]:
    """What Slurm knows of each job that a run submitted, in the words of squeue's --format."""
    numbers = re.findall(r"(?:SLURM|external) jobid '?(\d+)", said)
    query = f"squeue -h --states=all -o '{facts}' -j"
    return [slurm.ask(f"{query} {number}").split() for number in numbers]


@dataclass
class Run:
    """A Snakemake that runs on the cluster, in a session of its own as in a terminal."""

    slurm: Slurm
    checkout: Checkout
    process: subprocess.Popen[str]
    said: Path

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something; fails where it does not come."""
        end = time.monotonic() + SECONDS
        while not condition():
            is_in_time = self.process.poll() is None and time.monotonic() < end
            assert is_in_time, f"{self.said.read_text()}\n{self.slurm.logs()}"
            time.sleep(0.5)

    def until_it_trains(self) -> str:
        """Wait until a training runs and has written a state; the number of its job."""
        job = ""

        def trains() -> bool:
            nonlocal job
            running = self.slurm.ask("squeue -h -t R -o '%i %k'")
            found = re.search(r"^(\S+) .*rule_train_model", running, re.MULTILINE)
            job = found[1] if found else ""
            states = "results/*/models/*/*/state/*/last.safetensors"
            return job != "" and any(self.checkout.folder.glob(states))

        self.until(trains)
        return job

    def ends(self) -> str:
        """Wait for the end in success; what Snakemake said."""
        code = self.process.wait(SECONDS)
        said = self.said.read_text()
        assert code == 0, f"{said}\n{self.slurm.logs()}"
        return said


@contextmanager
def running(
    slurm: Slurm, checkout: Checkout, command: str, **variables: str
) -> Iterator[Run]:
    """Start a command line there, on that cluster; what it says is appended to a file."""
    said = checkout / "said.txt"
    with said.open("a") as stream:
        process = subprocess.Popen(
            command.split(),
            cwd=checkout.folder,
            env=_environment(slurm) | variables,
            stdout=stream,
            stderr=stream,
            text=True,
            start_new_session=True,
        )
    try:
        yield Run(slurm, checkout, process, said)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def submit(slurm: Slurm, checkout: Checkout, command: str, **variables: str) -> str:
    """Run a command line until its only job has ended; what Snakemake said until then.

    Snakemake itself would hear of the end half a minute later, and is not waited for.
    """
    with running(slurm, checkout, command, **variables) as run:
        ends = ([["COMPLETED"]], [["FAILED"]])
        run.until(lambda: submitted(slurm, run.said.read_text(), "%T") in ends)
        return run.said.read_text()


def lose_a_node(run: Run) -> tuple[str, str]:
    """Take a node from the running training for as long as its job ends; the job and the node."""
    slurm, job = run.slurm, run.until_it_trains()
    node = slurm.ask(f"squeue -h -j {job} -o %B")
    # Slurm takes it for failed, as where it does not answer.
    slurm.ask(f"scontrol update nodename={node} state=down reason=test")
    try:
        run.until(lambda: slurm.ask(f"squeue -h -j {job} -o %T") != "RUNNING")
    finally:
        slurm.ask(f"scontrol update nodename={node} state=resume")
    return job, node


def training(
    root: Path, parent: Path, recipe: dict[str, Any] | None = None, **options: Any
) -> Checkout:
    """Return a checkout whose demo is a prepared task of no size, with a training of seconds.

    ``recipe`` changes the training, ``options`` are of config.yaml.
    """
    checkout = check_out_here(root, parent)
    tiny.prepare(checkout / "results/demo_en_fr", name="demo_en_fr")
    # Its words are whole.
    checkout.write("results/demo_en_fr/vocabulary/codes", "#version: 0.2\n")
    stated = {"maximum_epochs": 2, "checkpoint_minutes": 0.01} | (recipe or {})
    settings = tiny.settings(**stated).model_dump(
        mode="json", include={"architecture", "training"}
    )
    overrides = {"models": {"demo": settings}}
    checkout.configure({"device": "cpu", "cores": 1, "overrides": overrides} | options)
    return checkout
