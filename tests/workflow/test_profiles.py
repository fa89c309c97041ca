"""The profiles and what the pages say of them, without a cluster: dry runs of what a user types."""

import os
import re
import subprocess
from pathlib import Path

import yaml

from tests.support.checkout import Checkout
from tests.support.refusals import rows


def test_a_small_target_plans_with_the_options_of_the_pages(
    root: Path, checkout: Checkout
) -> None:
    pages = [root / name for name in ("README.md", "docs/cluster.md", "docs/cloud.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    typed = r"^ {4,}snakemake \S+ (.*--profile.*?)(?: +#.*)?$"
    options = {*re.findall(typed, text, re.MULTILINE)}
    assert len(options) >= 4
    checkout.write("home/snakemake/site/profile.yaml", "executor: slurm\n")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(checkout / "home")}
    target = "results/demo_en_fr/corpus/raw/valid.source.zst"
    for stated in {*options, "--workflow-profile profiles/generic"}:
        command = f"snakemake {target} --dry-run {stated}"
        done = checkout.typed(command, environment).succeeded()
        assert done.planned == {"extract_corpus": 1, "write_demo_corpus": 1}, stated


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


ANSWERS = """
echo COMPLETED => success
echo RUNNING => running
echo CANCELLED by 7 => failed
echo REQUEUE_HOLD => running
echo 'slurm_load_jobs error: Invalid job id' >&2; exit 1 => failed
echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1 => running
"""


def test_states_are_the_schedulers_and_jobs_are_ended_by_a_program_that_needs_no_shell(
    root: Path, tmp_path: Path
) -> None:
    """Without an answer no job ends."""

    def said(answer: str, program: str, *command: str) -> str:
        """What a command says where a program of the scheduler's answers so."""
        (tmp_path / program).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / program).chmod(0o755)
        path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.check_output(command, cwd=root, env=path, text=True)

    for answer, state in rows(ANSWERS):
        found = said(answer, "squeue", "profiles/generic/status.sh", "7")
        assert found == f"{state}\n"
    stated = yaml.safe_load((root / "profiles/generic/profile.yaml").read_text("utf-8"))
    # As Snakemake's plugin has it.
    cancel = stated["cluster-generic-cancel-cmd"]
    assert said('echo "$@"', "scancel", cancel, "7", "8") == "7 8\n"
