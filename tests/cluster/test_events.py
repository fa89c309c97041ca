"""What happens to jobs on a cluster: a training still ends with the undisturbed one's model."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from convs2s.files.checksums import sha256
from tests.support import cluster
from tests.support.checkout import Checkout
from tests.support.slurm import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SECONDS_OF_WORK = {"maximum_epochs": 100, "schedule": {"kind": "cosine"}}
"""All epochs: left to validation, a training of no sense is over before anything happens to it."""

MORE_THAN_A_MINUTE = {"maximum_epochs": 2000, "schedule": {"kind": "cosine"}}
"""A job that may take a minute stops after half of it."""

SECONDS = 600
LOG = "results/logs/demo_en_fr/demo/seed1/train.log"
REASONS = (
    "SIGTERM was received; saved",
    "another worker was told to stop; saved",  # whose node heard of it first
    "ended without a word: killed",
    "minutes is near",
)
COMMAND = f"snakemake {cluster.MODEL} --allowed-rules train_model write_model_settings"


@dataclass
class Run:
    """A Snakemake that trains on the cluster, in a session of its own as in a terminal."""

    slurm: Slurm
    checkout: Checkout
    process: subprocess.Popen[str]
    said: Path

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something; fails where it does not come."""
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"{self.said.read_text()}\n{self.slurm.logs()}"
            time.sleep(0.2)

    def job(self) -> str:
        """The number of the job of the training that is not over."""
        return self.slurm.ask("squeue", "-h", "-o", "%i")

    def until_it_trains(self) -> str:
        """Wait until the training has written a state; the job's number."""
        self.until(lambda: has_state(self.checkout) and self.job() != "")
        return self.job()

    def ends(self) -> str:
        """Wait for the end; what Snakemake said and the training's log."""
        assert self.process.wait(SECONDS) == 0, f"{self.said.read_text()}\n{self.slurm.logs()}"
        return self.said.read_text()


def has_state(checkout: Checkout) -> bool:
    folder = (checkout / cluster.MODEL).parent
    return any(folder.glob("state/*/last.safetensors"))


def nobody_works_in(checkout: Checkout) -> bool:
    """Return whether the last process of a job is gone, which may be later than its job."""
    with (checkout / ".snakemake/alive").open("a") as alive:
        try:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def running(slurm: Slurm, checkout: Checkout, options: str = "") -> Iterator[Run]:
    """Start the training by the Slurm profile."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), slurm.environment["PATH"]])
    said = checkout / "said.txt"
    with said.open("a") as stream:
        process = subprocess.Popen(
            [*f"{COMMAND} --profile profiles/slurm {options}".split()],
            cwd=checkout.folder,
            env=slurm.environment | {"PATH": programs},
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


@pytest.fixture(scope="module", params=[1, 2], ids=["one node", "two nodes"])
def nodes(request: pytest.FixtureRequest) -> int:
    """Nodes of the training, with a worker on each."""
    return int(request.param)


@pytest.fixture(scope="module")
def undisturbed(
    root: Path, tmp_path_factory: pytest.TempPathFactory, slurm: Slurm, nodes: int
) -> str:
    """The checksum of the model of the same training, run without an event."""
    folder = tmp_path_factory.mktemp("undisturbed")
    checkout = cluster.training(root, folder, SECONDS_OF_WORK, nodes=nodes)
    with running(slurm, checkout) as run:
        run.ends()
    assert "resuming" not in (checkout / LOG).read_text()
    return sha256(checkout / cluster.MODEL)


@pytest.fixture
def checkout(root: Path, tmp_path: Path, nodes: int) -> Checkout:
    """The workflow with a training that takes seconds."""
    return cluster.training(root, tmp_path, SECONDS_OF_WORK, nodes=nodes)


def check(checkout: Checkout, undisturbed: str) -> None:
    """The model is the undisturbed one's; the log says why the training stopped and went on."""
    assert sha256(checkout / cluster.MODEL) == undisturbed
    log = (checkout / LOG).read_text()
    assert "resuming in epoch " in log
    assert any(reason in log for reason in REASONS)


def check_requeued(slurm: Slurm, said: str, job: str) -> None:
    """Slurm ran the job again under its number, and Snakemake heard nothing of it."""
    assert cluster.submitted(slurm, said, "%i %T") == [[job, "COMPLETED"]]


def test_a_job_that_is_requeued_goes_on_under_its_number(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout, "--slurm-requeue") as run:
        job = run.until_it_trains()
        slurm.ask("scontrol", "requeue", job)  # as preemption does
        said = run.ends()
    check_requeued(slurm, said, job)
    check(checkout, undisturbed)


def test_a_job_that_a_more_urgent_one_preempts_goes_on(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout) as run:
        job = run.until_it_trains()
        urgent = "sbatch --partition=urgent --exclusive --nodes=2 --output=/dev/null --wrap true"
        slurm.ask(*urgent.split())
        said = run.ends()
    check_requeued(slurm, said, job)
    assert "Restarts=1 " in slurm.ask("scontrol", "show", "job", job)
    check(checkout, undisturbed)


def test_a_cancelled_job_is_submitted_again(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout) as run:
        slurm.ask("scancel", run.until_it_trains())
        said = run.ends()
    assert "SLURM status is: 'CANCELLED'" in said
    states = [state for (state,) in cluster.submitted(slurm, said, "%T")]
    assert states == ["CANCELLED", "COMPLETED"]
    check(checkout, undisturbed)


def test_sigterm_to_a_job_saves_and_says_so(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout) as run:
        job = run.until_it_trains()
        slurm.ask("scancel", "--signal=TERM", job)
        said = run.ends()
    assert "training is not finished: SIGTERM was received; saved in epoch " in said
    check(checkout, undisturbed)


def test_a_node_that_goes_down_loses_no_training(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout) as run:
        job = run.until_it_trains()
        node = slurm.ask("squeue", "-h", "-j", job, "-o", "%B")
        slurm.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        run.until(lambda: slurm.ask("squeue", "-h", "-j", job, "-o", "%T") != "RUNNING")
        slurm.ask("scontrol", "update", f"nodename={node}", "state=resume")
        said = run.ends()
    check_requeued(slurm, said, job)
    check(checkout, undisturbed)


def test_a_job_without_enough_memory_gets_more(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout, "--set-resources train_model:mem_mb=attempt*attempt*250") as run:
        said = run.ends()
    asked = cluster.submitted(slurm, said, "%m")
    assert asked[:2] == [["250M"], ["1000M"]]
    logs = (checkout / ".snakemake/slurm_logs").rglob("*.log")
    assert any("exceeded memory limit" in log.read_text() for log in logs)
    assert sha256(checkout / cluster.MODEL) == undisturbed


def test_a_job_that_outlives_its_snakemake_is_never_written_beside(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout) as run:
        job = run.until_it_trains()
        run.process.kill()
        run.process.wait()
    assert slurm.ask("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING"
    slurm.ask("scancel", job)
    run.until(lambda: run.job() == "" and nobody_works_in(checkout))
    with running(slurm, checkout) as again:
        again.ends()
    check(checkout, undisturbed)


def test_a_time_limit_is_met_as_often_as_it_takes(
    slurm: Slurm, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    limited, free = (
        cluster.training(root, tmp_path_factory.mktemp(name), MORE_THAN_A_MINUTE)
        for name in ("limited", "free")
    )
    # Minutes, the least for Slurm; each try makes progress, and so none counts.
    options = "--retries 1 --set-resources train_model:runtime=1"
    with running(slurm, limited, options) as run, running(slurm, free) as other:
        other.ends()
        said = run.ends()
    assert "training is not finished: the time limit of 1 minutes is near; saved in epoch " in said
    *stopped, last = cluster.submitted(slurm, said, "%T %m")
    # Each stopped in good order, never by Slurm, and more often than Snakemake tries again.
    assert stopped == len(stopped) * [["FAILED", "16000M"]]
    assert last == ["COMPLETED", "16000M"]
    assert len(stopped) > 1
    check(limited, sha256(free / cluster.MODEL))
