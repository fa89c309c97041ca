"""The profiles and what the pages say of them, without a cluster: dry runs of what a user types."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from snakemake.utils import available_cpu_count

from tests.support.checkout import Checkout

TARGET = "results/demo_en_fr/corpus/raw/valid.source.zst"
JOB = "extract_corpus"


@pytest.mark.parametrize("option", ["--profile", "--workflow-profile"])
@pytest.mark.parametrize("profile", ["slurm", "generic"])
def test_every_cluster_profile_plans_by_either_option(
    checkout: Checkout, option: str, profile: str
) -> None:
    done = checkout.shell(
        f"snakemake -n {TARGET} {option} profiles/{profile}"
    ).succeeded()
    assert done.planned == {JOB: 1, "write_demo_corpus": 1}
    assert "mem_mb=2000" in done.said


PUBLIC = "download prepare align train decode evaluate speed tables figures paper report demo"


def test_the_public_targets_are_those_of_their_file(root: Path) -> None:
    rules = (root / "rules/targets.smk").read_text("utf-8")
    assert re.findall(r"^rule (\w+):", rules, re.MULTILINE) == PUBLIC.split()[:-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "scale", ["paper", "multi30k", "multi30k_trained", "demo", "mirror"]
)
@pytest.mark.parametrize("option", ["--profile", "--workflow-profile"])
@pytest.mark.parametrize("profile", ["default", "slurm", "generic"])
def test_every_public_target_plans_at_every_scale(
    checkout: Checkout, scale: str, option: str, profile: str
) -> None:
    command = f"snakemake -n {option} profiles/{profile} --config scale={scale} --quiet reason"
    done = checkout.shell(f"{command} -- {PUBLIC} preflight").succeeded()
    assert done.planned["train_model"] > 0
    assert all(done.planned[target] == 1 for target in PUBLIC.split())


def test_every_command_of_the_pages_plans(root: Path, checkout: Checkout) -> None:
    pages = [root / name for name in ("README.md", "docs/cluster.md", "docs/cloud.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    commands = re.findall(
        r"^ {4,}(snakemake .*--profile.*?)(?: +#.*)?$", text, re.MULTILINE
    )
    assert len(commands) >= 5
    # By the tests of each profile.
    planned = re.compile(r"snakemake TARGET --profile \S+")
    checkout.write("home/snakemake/site/profile.yaml", "executor: slurm\n")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(checkout / "home")}
    for command in (one for one in commands if not planned.fullmatch(one)):
        command = f"{command.replace('TARGET', TARGET)} --quiet --dry-run"
        checkout.shell(command, environment).succeeded()


def test_default_profile_holds_nothing_that_would_override_a_cluster_profile(
    root: Path,
) -> None:
    text = (root / "profiles/default/profile.yaml").read_text("utf-8")
    profile = yaml.safe_load("\n".join(re.findall(r"^[\w-]+: .*", text, re.MULTILINE)))
    profile.pop("__use_yte__")
    assert set(profile) == {"rerun-triggers", "rerun-incomplete", "nolock", "quiet"}
    for cluster in ("slurm", "generic"):
        other = yaml.safe_load(
            (root / f"profiles/{cluster}/profile.yaml").read_text("utf-8")
        )
        assert {key: other[key] for key in profile} == profile
        assert "cores" not in other


def test_what_the_profile_of_slurm_explains_the_generic_one_states_as_well(
    root: Path,
) -> None:
    slurm, other = (
        yaml.safe_load((root / f"profiles/{name}/profile.yaml").read_text("utf-8"))
        for name in ("slurm", "generic")
    )
    own = {"executor", "max-status-checks-per-second"}
    common = {
        key: value for key, value in slurm.items() if not key.startswith("slurm-")
    }
    common = {key: value for key, value in common.items() if key not in own}
    assert {key: other.get(key) for key in common} == common


@pytest.mark.parametrize(
    ("options", "cores"), [("", available_cpu_count()), ("--cores 1", 1)]
)
def test_a_run_on_this_machine_has_all_cores_or_those_asked_for(
    checkout: Checkout, options: str, cores: int
) -> None:
    done = checkout.shell(
        f"snakemake {TARGET} {options} --until write_demo_corpus"
    ).succeeded()
    assert re.search(rf"^Provided cores: {cores}\b", done.said, re.MULTILINE), done.said


ANSWERS = {
    "generic": {
        "echo COMPLETED": "success",
        "echo RUNNING": "running",
        "echo OUT_OF_MEMORY": "failed",
        "echo CANCELLED by 7": "failed",
        "echo SIGNALING": "running",
        "echo REQUEUE_HOLD": "running",
        "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1": "failed",
        "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1": "running",
    },
}
"""Profile -> what its scheduler's program does -> the state of the job."""


@pytest.mark.parametrize(
    ("profile", "answer", "state"),
    [
        (profile, *one)
        for profile, answers in ANSWERS.items()
        for one in answers.items()
    ],
)
def test_states_are_the_schedulers_and_without_an_answer_no_job_ends(
    root: Path, tmp_path: Path, profile: str, answer: str, state: str
) -> None:
    program = tmp_path / "squeue"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    said = subprocess.run(
        [root / f"profiles/{profile}/status.sh", "7"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert said.stdout == f"{state}\n"


def test_jobs_are_ended_by_a_program_that_needs_no_shell(
    root: Path, tmp_path: Path
) -> None:
    stated = yaml.safe_load((root / "profiles/generic/profile.yaml").read_text("utf-8"))
    (tmp_path / "scancel").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "scancel").chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    # As Snakemake's plugin has it.
    command = [stated["cluster-generic-cancel-cmd"], "7", "8"]
    assert subprocess.check_output(command, cwd=root, env=path, text=True) == "7 8\n"
