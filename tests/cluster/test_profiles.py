"""The cluster profiles, each by jobs that a real Slurm runs: commands as a user types them."""

import shutil
from pathlib import Path

import pytest
from snakemake.utils import available_cpu_count

from convs2s.files.tensors import load_tensors, save_tensors
from tests.support import tiny
from tests.support.checkout import Checkout, check_out
from tests.support.cluster import run, set_up_profiles, submitted
from tests.support.slurm import Slurm

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
        gpu=1,
    shell:
        "echo $CUDA_VISIBLE_DEVICES $SLURM_JOB_ID {resources.mem_mb} > {output};"
        " mkdir seen 2>/dev/null && exit 1 || true"
"""


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Checkout:
    """The workflow as it stands, with nothing run and profiles for this cluster."""
    checkout = check_out(root, tmp_path)
    set_up_profiles(checkout.folder)
    return checkout


@pytest.fixture
def one_rule(root: Path, tmp_path: Path) -> Checkout:
    """A workflow of one rule, with this project's profiles."""
    shutil.copytree(root / "profiles", tmp_path / "profiles")
    set_up_profiles(tmp_path)
    (tmp_path / "Snakefile").write_text(FLAKY.replace("THREADS", str(THREADS)))
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    ("option", "profile"), [("--profile", "slurm"), ("--workflow-profile", "generic")]
)
def test_profile_keeps_its_retries_and_resources(
    slurm: Slurm, one_rule: Checkout, option: str, profile: str
) -> None:
    done = run(slurm, one_rule, f"snakemake attempts/one {option} profiles/{profile}")
    device, job, memory = (one_rule / "attempts/one").read_text().split()
    assert (device, memory) == ("0", "8000"), done.said
    facts = slurm.ask("squeue", "-h", "--states=all", "-j", job, "-o", "%T %m %l %C").split()
    assert facts == ["COMPLETED", "8000M", "2:00:00", str(THREADS)]


# The other two pairs of an option and a profile, with what the command line sets.
@pytest.mark.parametrize(
    ("option", "profile"), [("--profile", "generic"), ("--workflow-profile", "slurm")]
)
def test_either_option_runs_a_job_with_more_threads_than_this_machine_has(
    slurm: Slurm, checkout: Checkout, option: str, profile: str
) -> None:
    target = "results/demo_en_fr/corpus/raw/valid.source.zst"
    job = "extract_corpus"
    settings = f"--set-threads {job}={THREADS} --set-resources {job}:mem_mb=900"
    done = run(slurm, checkout, f"snakemake {target} {option} profiles/{profile} {settings}")
    assert (checkout / target).stat().st_size > 0
    assert submitted(slurm, done.said, "%T %C %m") == [["COMPLETED", str(THREADS), "900M"]]


def test_a_timing_asks_for_no_more_threads_on_its_node_than_at_submission(
    slurm: Slurm, checkout: Checkout, tmp_path: Path
) -> None:
    folder = "results/demo_en_fr/models/demo/seed1"
    model = checkout / f"{folder}/model.safetensors"
    weights, fields = load_tensors(tiny.trained_model(tmp_path))
    model.parent.mkdir(parents=True)
    save_tensors(model, weights, {**fields, "task": "demo_en_fr"})
    run(slurm, checkout, "snakemake results/demo_en_fr/corpus/raw/test.source.zst")
    command = f"snakemake {folder}/test.beam5.cpu.speed.json --profile profiles/slurm"
    # Without that option Snakemake would train the model again, as it has not seen it made.
    done = run(slurm, checkout, f"{command} --allowed-rules time_decoding")
    assert submitted(slurm, done.said, "%T %C") == [["COMPLETED", "1"]]


# Each level of jobs waits for twelve seconds or more, so `make test` submits the last four levels
# of ten, from word counts to token stores; `make test-all` submits all.
COUNTED = " ".join(
    f"results/demo_en_fr/corpus/{path}"
    for side in ("source", "target")
    for path in (f"clean/valid.{side}.zst", f"words/{side}.tsv.zst")
)


@pytest.mark.parametrize(
    "made_here",
    [COUNTED, pytest.param("", marks=pytest.mark.slow)],
    ids=["last steps", "all steps"],
)
def test_slurm_prepares_the_demo(slurm: Slurm, checkout: Checkout, made_here: str) -> None:
    if made_here:
        checkout.configure({"shards": 1})  # all steps have shards
        run(slurm, checkout, f"snakemake {made_here}")
    stores = [f"results/demo_en_fr/dataset/{split}.arrow" for split in ("train", "valid")]
    command = f"snakemake {' '.join(stores)} --profile profiles/slurm"
    run(slurm, checkout, command)
    assert all((checkout / store).stat().st_size > 0 for store in stores)
    assert "rule_binarize" in slurm.ask("squeue", "-h", "--states=COMPLETED", "-o", "%k")
    assert run(slurm, checkout, command).nothing_to_do
