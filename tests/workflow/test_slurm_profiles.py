"""The cluster profiles, each by jobs that a real Slurm runs: commands as a user types them."""

import re
import shutil
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from snakemake.utils import available_cpu_count

from convs2s.files.tensors import load_tensors, save_tensors
from tests.support.checkout import Checkout
from tests.workflow.cluster import (
    check_out_here,
    run,
    set_up_profiles,
    submit,
    submitted,
)
from tests.workflow.slurm import ACCOUNT, Slurm

pytestmark = pytest.mark.slurm

THREADS = available_cpu_count() + 1
"""Of a job: more than this machine has."""

# Fails at first, as a job with too little memory does.
FLAKY = """\
rule flaky:
    output:
        "attempts/{name}",
    threads: THREADS
    resources:
        mem_mb=lambda wildcards, attempt: attempt * 400,
        runtime=20,
        gpu=1,
    shell:
        "echo $CUDA_VISIBLE_DEVICES $SLURM_JOB_ID {resources.mem_mb} > {output};"
        " mkdir seen 2>/dev/null && exit 1 || true"
"""


@pytest.fixture
def one_rule(root: Path, tmp_path: Path) -> Checkout:
    """A workflow of one rule, with this project's profiles."""
    shutil.copytree(root / "profiles", tmp_path / "profiles")
    set_up_profiles(tmp_path)
    (tmp_path / "Snakefile").write_text(FLAKY.replace("THREADS", str(THREADS)))
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    ("option", "profile"),
    [
        pytest.param("--profile", "slurm", marks=pytest.mark.slow),
        ("--workflow-profile", "generic"),
    ],
)
def test_a_job_that_fails_runs_again_with_more_memory(
    slurm: Slurm, one_rule: Checkout, option: str, profile: str
) -> None:
    done = run(slurm, one_rule, f"snakemake attempts/one {option} profiles/{profile}")
    device, job, memory = one_rule.read("attempts/one").split()
    assert (device, memory) == ("0", "800"), done.said
    facts = slurm.ask(f"squeue -h --states=all -j {job} -o '%T %m %l %C'")
    assert facts == f"COMPLETED 800M 20:00 {THREADS}"


# What a site has for all who compute there; it knows no `set-resources` of this workflow.
SITE = "default-resources: {slurm_account: lab, slurm_partition: short}\n"


def test_a_site_keeps_its_partition_and_account(
    slurm: Slurm, one_rule: Checkout
) -> None:
    one_rule.write("home/snakemake/site/profile.yaml", SITE)
    (one_rule / "seen").mkdir()  # the job succeeds at once
    command = "snakemake attempts/one --profile site --workflow-profile profiles/slurm"
    said = submit(slurm, one_rule, command, XDG_CONFIG_HOME=str(one_rule / "home"))
    assert submitted(slurm, said, "%T %P %a") == [["COMPLETED", "short", ACCOUNT]]


FOLDER = "results/demo_en_fr/models/demo/seed1"
CORPUS = "results/demo_en_fr/corpus"
LOGS = "results/logs/demo_en_fr/demo/seed1"


@pytest.fixture
def with_model(root: Path, tmp_path: Path, model: Path) -> Checkout:
    """The workflow with a model of no sense in the place of the demo's."""
    checkout = check_out_here(root, tmp_path)
    weights, fields = load_tensors(model)
    path = checkout.write(f"{FOLDER}/model.safetensors", b"")
    save_tensors(path, weights, {**fields, "task": "demo_en_fr"})
    return checkout


@pytest.mark.slow
def test_a_timing_asks_for_no_more_threads_on_its_node_than_at_submission(
    slurm: Slurm, with_model: Checkout
) -> None:
    run(slurm, with_model, f"snakemake {CORPUS}/raw/test.source.zst")
    command = f"snakemake {FOLDER}/test.beam5.cpu.speed.json --profile profiles/slurm"
    # Without that option Snakemake would train the model again, as it has not seen it made.
    said = submit(slurm, with_model, f"{command} --allowed-rules time_decoding")
    assert submitted(slurm, said, "%T %C") == [["COMPLETED", "4"]]


@pytest.mark.slow
def test_translations_and_their_scores_are_one_submission_on_one_gpu(
    slurm: Slurm, with_model: Checkout
) -> None:
    with_model.configure({"device": "cpu", "cores": 1})
    names = ("greedy", "beam5", "beam5_int8")
    targets = " ".join(f"{FOLDER}/test.{name}.bleu.json" for name in names)
    kinds = ("raw/test.source", "raw/test.target", "tok/test.source", "tok/test.target")
    texts = " ".join(f"{CORPUS}/{kind}.zst" for kind in kinds)
    run(slurm, with_model, f"snakemake {texts}")
    rules = "--allowed-rules decode_test_set evaluate_bleu"
    # Asked for by hand, as the CPU has to translate here.
    gpu = "--set-resources decode_test_set:gpu=1"
    command = f"snakemake {targets} --profile profiles/slurm {rules} {gpu}"
    said = submit(slurm, with_model, command)
    ((job, state),) = submitted(slurm, said, "%i %T")
    assert state == "COMPLETED"
    assert "gres/gpu=1," in slurm.ask(f"sacct -X -n -P -j {job} -o ReqTRES")
    logs = (with_model.read(f"{LOGS}/test.{name}.decode.log") for name in names)
    spans = sorted(map(translated, logs))
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def translated(log: str) -> tuple[float, float]:
    """When a translation began and ended, by its log, in seconds."""
    began = datetime.fromisoformat(log[:19]).timestamp()
    (seconds,) = re.findall(r"^done in ([\d.]+) s$", log, re.MULTILINE)
    return began, began + float(seconds)


def test_preflight_names_what_no_partition_can_run(
    slurm: Slurm, root: Path, tmp_path: Path
) -> None:
    command = "snakemake preflight --profile profiles/slurm --default-resources"
    config = "slurm_partition=short --config scale=demo 'tasks=[demo_en_fr]' gpus=4"
    checkout = check_out_here(root, tmp_path)
    said = run(slurm, checkout, f"{command} {config}").said
    warned = re.findall("^WARNING: train_model: asks for (.*): --", said, re.MULTILINE)
    assert warned == [
        "1,440 minutes, partition short gives at most 30",
        "4 GPUs on a node, partition short gives at most 2",
    ]
