"""The cluster profiles, each by jobs that a real Slurm runs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.slurm import Slurm

pytestmark = pytest.mark.slurm

# Questions that a cluster of many users would mind, but a test would wait for.
IMPATIENT = {
    "slurm": [
        "--slurm-status-command=squeue",
        "--slurm-init-seconds-before-status-checks=1",
    ],
    "generic": ["--seconds-between-status-checks=1"],
}

# Fails at first, as a job with too little memory does.
FLAKY = """\
rule flaky:
    output:
        "attempts/{name}",
    threads: 4
    resources:
        gpu=1,
    shell:
        "echo $CUDA_VISIBLE_DEVICES $SLURM_JOB_ID {resources.mem_mb} > {output};"
        " mkdir seen 2>/dev/null && exit 1 || true"
"""


def run_snakemake(slurm: Slurm, directory: Path, *arguments: str) -> str:
    """Runs Snakemake there, on that cluster, and gives back what it said; fails where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=directory,
        env=slurm.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{slurm.logs()}"
    return done.stdout


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """The workflow as it stands, in a folder of its own."""
    parts = ["config", "envs", "profiles", "rules", "schemas", "src", "workflow"]
    for part in parts:
        shutil.copytree(root / part, tmp_path / part, symlinks=True)
    for part in ("Snakefile", "config.yaml"):
        shutil.copy(root / part, tmp_path)
    return tmp_path


@pytest.fixture
def directory(root: Path, tmp_path: Path) -> Path:
    """A workflow of one rule, with this project's profiles."""
    shutil.copytree(root / "profiles", tmp_path / "profiles")
    (tmp_path / "Snakefile").write_text(FLAKY)
    return tmp_path


# The default profile's `cores`, this machine's, would cut the threads of a job under --profile; it
# stays unread under --workflow-profile (docs/cluster.md).
@pytest.mark.parametrize(
    ("option", "profile", "threads"),
    [("--profile", "slurm", None), ("--workflow-profile", "generic", 4)],
)
def test_profile_keeps_its_retries_and_resources(
    slurm: Slurm, directory: Path, option: str, profile: str, threads: int | None
) -> None:
    said = run_snakemake(
        slurm, directory, option, f"profiles/{profile}", *IMPATIENT[profile], "attempts/one"
    )
    device, job, memory = (directory / "attempts/one").read_text().split()
    assert (device, memory) == ("0", "8000"), said
    state, asked, runtime, cpus = slurm.ask(
        "squeue", "-h", "--states=all", "-j", job, "-o", "%T %m %l %C"
    ).split()
    assert (state, asked, runtime) == ("COMPLETED", "8000M", "2:00:00")
    assert threads is None or int(cpus) == threads


# Each level of jobs waits for twelve seconds or more, so `make test` submits the last four levels
# of ten, from word counts to token stores; `make test-all` submits all.
COUNTED = [
    f"results/demo_en_fr/corpus/{path}"
    for language in ("en", "fr")
    for path in (f"clean/valid.{language}.zst", f"words/{language}.tsv.zst")
]


@pytest.mark.parametrize(
    "made_here",
    [COUNTED, pytest.param([], marks=pytest.mark.slow)],
    ids=["last steps", "all steps"],
)
def test_slurm_prepares_the_demo(slurm: Slurm, checkout: Path, made_here: list[str]) -> None:
    if made_here:
        run_snakemake(slurm, checkout, *made_here)
    stores = [f"results/demo_en_fr/dataset/{split}.arrow" for split in ("train", "valid")]
    command = ["--profile", "profiles/slurm", *IMPATIENT["slurm"], "--", *stores]
    run_snakemake(slurm, checkout, *command)
    assert all((checkout / store).stat().st_size > 0 for store in stores)
    assert "rule_binarize" in slurm.ask("squeue", "-h", "--states=COMPLETED", "-o", "%k")
    assert "Nothing to be done" in run_snakemake(slurm, checkout, *command)
