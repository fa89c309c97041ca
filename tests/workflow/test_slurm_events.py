"""What happens to jobs on a cluster: a training still ends with the undisturbed one's model."""

import time
from pathlib import Path

import pytest

from convs2s.files.checksums import sha256
from convs2s.files.text import write_lines
from tests.support.checkout import Checkout
from tests.workflow import cluster
from tests.workflow.cluster import LOG, MODEL, TRAIN, running, submitted
from tests.workflow.slurm import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SECONDS_OF_WORK = {"maximum_epochs": 100, "schedule": {"kind": "cosine"}}
"""All epochs: left to validation, a training of no sense is over before anything happens to it."""

MORE_THAN_A_MINUTE = {"maximum_epochs": 1000, "schedule": {"kind": "cosine"}}
"""A job that may take a minute stops after half of it."""

REASONS = (
    "SIGTERM was received; saved",
    "another worker was told to stop; saved",  # whose node heard of it first
    "Interrupted: SIGTERM",  # a second one, as Slurm sends where there is no grace
    "ended without a word: killed",
    "minutes is near",
)
COMMAND = f"{TRAIN} --profile profiles/slurm"


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
    cluster.run(slurm, checkout, COMMAND)
    assert "resuming" not in checkout.read(LOG)
    return sha256(checkout / MODEL)


@pytest.fixture
def checkout(root: Path, tmp_path: Path, nodes: int) -> Checkout:
    """The workflow with a training that takes seconds."""
    return cluster.training(root, tmp_path, SECONDS_OF_WORK, nodes=nodes)


def check(checkout: Checkout, undisturbed: str) -> None:
    """The model is the undisturbed one's; the log says why the training stopped and went on."""
    assert sha256(checkout / MODEL) == undisturbed
    log = checkout.read(LOG)
    assert "resuming in epoch " in log
    assert any(reason in log for reason in REASONS)


def restarts(slurm: Slurm, job: str) -> int:
    """How often Slurm has started the job again."""
    shown = slurm.ask(f"scontrol show job {job}")
    return int(shown.partition(" Restarts=")[2].split()[0])


URGENT = (
    "sbatch --partition=urgent --exclusive --nodes=2 --output=/dev/null --wrap true"
)


# `main` kills at once, `graceful` lets the training save and queue itself again.
@pytest.mark.parametrize(
    ("options", "event"),
    [
        ("--default-resources slurm_partition=main", URGENT),
        ("--default-resources slurm_partition=graceful", URGENT),
        ("--retries 0", "scancel --signal=TERM JOB"),
    ],
)
def test_a_job_that_makes_way_goes_on_under_its_number(
    slurm: Slurm, checkout: Checkout, undisturbed: str, options: str, event: str
) -> None:
    with running(slurm, checkout, f"{COMMAND} {options}") as run:
        job = run.until_it_trains()
        slurm.ask(event.replace("JOB", job))
        said = run.ends()
    # Snakemake heard nothing of it.
    assert submitted(slurm, said, "%i %T") == [[job, "COMPLETED"]]
    assert restarts(slurm, job) > 0
    check(checkout, undisturbed)


def test_a_cancelled_job_is_submitted_again(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout, COMMAND) as run:
        slurm.ask(f"scancel {run.until_it_trains()}")
        said = run.ends()
    assert "SLURM status is: 'CANCELLED'" in said
    assert submitted(slurm, said, "%T") == [["CANCELLED"], ["COMPLETED"]]
    check(checkout, undisturbed)


TRANSLATIONS = MODEL.replace("model.safetensors", "test.beam5.jsonl")
RULES = "train_model write_model_settings decode_test_set"
THEN_TRANSLATE = (
    f"snakemake {TRANSLATIONS} --allowed-rules {RULES} --profile profiles/slurm"
)
"""A command whose second job is submitted after the training, and so after what happened to it."""


def test_a_node_that_goes_down_loses_no_training_and_no_later_job(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    source = checkout / "results/demo_en_fr/corpus/raw/test.source.zst"
    write_lines(source, ["w1 w2", "w3"])
    with running(slurm, checkout, f"{THEN_TRANSLATE} --retries 0") as run:
        job, _ = cluster.lose_a_node(run)
        said = run.ends()
    # `%x`: nodes that the job may not run on, which were once `None assigned`.
    (trained, *_), (_, *translated) = submitted(slurm, said, "%i %T %x")
    assert trained == job
    assert translated[0] == "COMPLETED"
    assert "exclude" not in said
    assert slurm.ask(f"scontrol show job {job}").count("ExcNodeList=(null)") == 1
    assert restarts(slurm, job) == 1
    assert checkout.read(TRANSLATIONS).count("\n") == 2
    check(checkout, undisturbed)


def test_the_alternative_to_squeue_survives_a_node_too(
    slurm: Slurm, root: Path, tmp_path: Path
) -> None:
    checkout = cluster.training(root, tmp_path, SECONDS_OF_WORK)
    profile = checkout / "profiles/slurm/profile.yaml"
    text = profile.read_text()
    profile.write_text(text.replace("slurm-requeue:", "slurm-no-requeue:"))
    with running(slurm, checkout, f"{COMMAND} --slurm-status-command sacct") as run:
        job, node = cluster.lose_a_node(run)
        said = run.ends()
    assert f"SLURM-job '{job}' failed due to a node failure" in said
    (_, _), (again, state) = submitted(slurm, said, "%i %T")
    assert state == "COMPLETED"
    assert f"ExcNodeList={node}" in slurm.ask(f"scontrol show job {again}")
    assert "resuming in epoch " in checkout.read(LOG)


def test_a_job_without_enough_memory_gets_more(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    memory = "--set-resources train_model:mem_mb=attempt*attempt*250"
    said = cluster.run(slurm, checkout, f"{COMMAND} {memory}").said
    assert submitted(slurm, said, "%m")[:2] == [["250M"], ["1000M"]]
    logs = (checkout / ".snakemake/slurm_logs").rglob("*.log")
    assert any("exceeded memory limit" in log.read_text() for log in logs)
    assert sha256(checkout / MODEL) == undisturbed


def test_a_rerun_waits_for_the_jobs_of_a_snakemake_that_was_killed(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout, COMMAND) as run:
        job = run.until_it_trains()
        run.process.kill()
        run.process.wait()
    slurm.ask(f"scontrol requeuehold {job}")
    rule = "rule_train_model_wildcards_"
    with running(slurm, checkout, COMMAND) as again:
        waits, runs = (f"{job} ({state}, {rule}" for state in ("PENDING", "RUNNING"))
        again.until(lambda: waits in again.said.read_text())
        slurm.ask(f"scontrol release {job}")
        again.until(lambda: runs in again.said.read_text())
        # Nothing was submitted beside it.
        assert len(submitted(slurm, again.said.read_text(), "%i")) == 1
        said = again.ends()
    assert "all have ended: the same command starts again" in said
    check(checkout, undisturbed)


def test_a_time_limit_is_met_as_often_as_it_takes(
    slurm: Slurm, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    limited, free = (
        cluster.training(root, tmp_path_factory.mktemp(name), MORE_THAN_A_MINUTE)
        for name in ("limited", "free")
    )
    # Minutes, the least for Slurm. Snakemake may try twice, but hears of one try alone.
    command = f"{COMMAND} --retries 1 --set-resources train_model:runtime=1"
    with (
        running(slurm, free, COMMAND) as other,
        running(slurm, limited, command) as run,
    ):
        other.ends()
        said = run.ends()
    ((job, state, memory),) = submitted(slurm, said, "%i %T %m")
    assert (state, memory) == ("COMPLETED", "16000M")
    assert restarts(slurm, job) > 1
    stopped = "the time limit of 1 minutes is near; saved in epoch "
    assert f"training is not finished: {stopped}" in limited.read(LOG)
    check(limited, sha256(free / MODEL))


def test_a_controller_that_is_away_loses_nothing(
    slurm: Slurm, checkout: Checkout, undisturbed: str
) -> None:
    with running(slurm, checkout, f"{COMMAND} --retries 0") as run:
        job = run.until_it_trains()
        slurm.stop("slurmctld")
        time.sleep(75)
        slurm.start("slurmctld")
        slurm.wait_for_answers()
        said = run.ends()
    assert submitted(slurm, said, "%i %T") == [[job, "COMPLETED"]]
    assert sha256(checkout / MODEL) == undisturbed
    assert "resuming" not in checkout.read(LOG)


def test_a_training_that_diverges_is_trained_once(
    slurm: Slurm, root: Path, tmp_path: Path
) -> None:
    recipe = {"learning_rate": 1e30, "clip": 1e30}
    checkout = cluster.training(root, tmp_path, recipe)
    done = checkout.shell(COMMAND, slurm.environment)
    assert done.code == 1
    assert submitted(slurm, done.said, "%T") == 3 * [["FAILED"]]
    log = checkout.read(LOG)
    assert log.count("error: training diverged in epoch 1") == 1
    assert log.count("error: the last try of this run would only be repeated (") == 2
