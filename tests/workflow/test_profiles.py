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


@pytest.mark.parametrize(
    ("option", "profile"), [("--profile", "slurm"), ("--workflow-profile", "generic")]
)
def test_every_cluster_profile_plans_by_either_option(
    planned_checkout: Checkout, option: str, profile: str
) -> None:
    command = f"snakemake -n {TARGET} {option} profiles/{profile}"
    done = planned_checkout.typed(command).succeeded()
    assert done.planned == {JOB: 1, "write_demo_corpus": 1}
    assert "mem_mb=2000" in done.said


def test_every_command_of_the_pages_plans(root: Path, checkout: Checkout) -> None:
    pages = [root / name for name in ("README.md", "docs/cluster.md", "docs/cloud.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    commands = re.findall(
        r"^ {4,}(snakemake .*--profile.*?)(?: +#.*)?$", text, re.MULTILINE
    )
    assert len(commands) >= 5
    # Those are planned by test_every_cluster_profile_plans_by_either_option.
    planned = re.compile(r"snakemake TARGET --profile \S+")
    checkout.write("home/snakemake/site/profile.yaml", "executor: slurm\n")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(checkout / "home")}
    for command in (one for one in commands if not planned.fullmatch(one)):
        command = f"{command.replace('TARGET', TARGET)} --quiet --dry-run"
        checkout.typed(command, environment).succeeded()


def test_what_a_profile_explains_the_others_state_as_well(root: Path) -> None:
    default, slurm, other = (
        (root / f"profiles/{name}/profile.yaml").read_text("utf-8")
        for name in ("default", "slurm", "generic")
    )
    lines = re.findall(r"^[\w-]+: .*", default, re.MULTILINE)
    own = yaml.safe_load("\n".join(lines))
    del own["__use_yte__"]
    assert set(own) == {"rerun-triggers", "rerun-incomplete", "nolock", "quiet"}
    ours, theirs = yaml.safe_load(slurm), yaml.safe_load(other)
    assert own.items() <= ours.items()
    assert "cores" not in ours.keys() | theirs.keys()
    for key in ours.keys() - {"executor", "max-status-checks-per-second"}:
        assert key.startswith("slurm-") or theirs[key] == ours[key]


@pytest.mark.parametrize(
    ("options", "cores"), [("", available_cpu_count()), ("--cores 1", 1)]
)
def test_a_run_on_this_machine_has_all_cores_or_those_asked_for(
    checkout: Checkout, options: str, cores: int
) -> None:
    command = f"snakemake {TARGET} {options} --until write_demo_corpus"
    done = checkout.typed(command).succeeded()
    assert re.search(rf"^Provided cores: {cores}\b", done.said, re.MULTILINE), done.said


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("echo COMPLETED", "success"),
        ("echo RUNNING", "running"),
        ("echo OUT_OF_MEMORY", "failed"),
        ("echo CANCELLED by 7", "failed"),
        ("echo SIGNALING", "running"),
        ("echo REQUEUE_HOLD", "running"),
        ("echo 'slurm_load_jobs error: Invalid job id' >&2; exit 1", "failed"),
        ("echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1", "running"),
    ],
)
def test_states_are_the_schedulers_and_without_an_answer_no_job_ends(
    root: Path, tmp_path: Path, answer: str, state: str
) -> None:
    program = tmp_path / "squeue"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    command = [str(root / "profiles/generic/status.sh"), "7"]
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert subprocess.check_output(command, env=path, text=True) == f"{state}\n"


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
