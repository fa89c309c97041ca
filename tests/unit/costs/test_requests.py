"""The requests of a run, as printed, and the warnings on those that can never run."""

import importlib.util
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from convs2s.costs.dry_run import DryRun, Request
from convs2s.costs.requests import (
    Submission,
    requests_report,
    submission_of,
    table,
    torch_has_gpus,
    warnings,
)

SLURM = Submission(
    "slurm",
    limits_cores=False,
    chooses_partition=False,
    translations=None,
    folder=Path(),
)
FAKE_SNAKEMAKE = """\
import sys
from pathlib import Path
assert sys.argv[-2:] == ["--", "paper"], sys.argv
print(Path("plan.txt").read_text() or sys.exit("no such task"))
"""
PLAN = """\
rule count:
    resources: mem_mb=4000, runtime=60
rule settings:
    resources: mem_mb=4000, runtime=60
"""
RULES = """\
rule settings:
    localrule: True
    script:
        "settings.py"


rule count:
    script:
        "count.py"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, without profiles at home and without Slurm."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    return tmp_path


def fake_sinfo(folder: Path, script: str) -> None:
    """Put a command sinfo on the PATH, a script of the shell."""
    program = folder / "bin/sinfo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def with_torch(
    monkeypatch: pytest.MonkeyPatch, folder: Path, version: str | None
) -> None:
    """Let torch be installed in a folder, with that text in its version.py; None: not at all."""
    spec = None
    if version is not None:
        (folder / "version.py").write_text(version)
        spec = ModuleSpec("torch", None, origin=str(folder / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)


def request(name: str, **resources: object) -> Request:
    return Request(name, name, {key: str(value) for key, value in resources.items()})


def test_a_line_for_each_kind() -> None:
    requests = [
        *[
            request("count", threads=1, mem_mb=size, runtime=60)
            for size in (4000, 8000, "<TBD>")
        ],
        request(
            "train",
            threads=8,
            mem_mb="<TBD>",
            runtime=1440,
            gpu=4,
            slurm_partition="gpu",
        ),
        request("time", threads=999_999, nodes=2),
    ]
    lines = list(table(DryRun(requests, local=3, not_shown=2)))
    assert [line.split() for line in lines[:4]] == [
        ["submissions", "threads", "mem_mb", "runtime", "GPUs", "further"],
        ["train", "1", "8", "?", "1,440", "4", "slurm_partition=gpu"],
        ["count", "3", "1", "4,000-8,000-?", "60"],
        ["time", "1", "all", "nodes=2"],
    ]
    assert lines[4:] == [
        "?: not known before the input of the job exists",
        "submissions: 5; jobs that run here: 3",
        "not counted: 2 jobs of rules with a message of their own",
    ]


def test_nothing_to_submit() -> None:
    plan = DryRun([], local=2, not_shown=0)
    assert list(table(plan)) == ["submissions: 0; jobs that run here: 2"]
    assert list(warnings(plan, SLURM)) == []


def test_requests_that_can_never_run(here: Path) -> None:
    fake_sinfo(here, "echo 'cpu*|30:00|8|16000|4|(null)'")
    requests = [request("long", runtime=44), request("large", mem_mb=20000)]
    plan = DryRun(requests, local=0, not_shown=0)
    assert list(warnings(plan, SLURM)) == [
        "WARNING: long: asks for 44 minutes, partition cpu gives at most 30: --set-resources "
        "long:runtime=30",
        "WARNING: large: asks for 20,000 MB of memory on a node, partition cpu gives at most "
        "16,000: --set-resources large:mem_mb=16000",
    ]
    other = replace(SLURM, executor="cluster-generic")
    assert list(warnings(plan, other)) == []


def test_where_nobody_says_what_there_is(here: Path) -> None:
    plan = DryRun([request("count")], local=0, not_shown=0)
    said = ["requests are not checked: sinfo is not here, or does not answer"]
    assert list(warnings(plan, SLURM)) == said
    fake_sinfo(here, "exit 1")
    assert list(warnings(plan, SLURM)) == said


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", False),
        ("cuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n", True),
        ("cuda = None\nhip = '6.4'\n", True),
        (None, False),
    ],
)
def test_torch_for_gpus(
    here: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, expected: bool
) -> None:
    with_torch(monkeypatch, here, version)
    assert torch_has_gpus() is expected
    plan = DryRun([request("train", gpu=1)], local=0, not_shown=0)
    assert (
        "make install TORCH=cuda" in "\n".join(warnings(plan, SLURM))
    ) is not expected


def test_who_runs_the_jobs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def executor(*words: str) -> str:
        return submission_of(words, here).executor

    for place, name in (
        ("profiles/default/profile.yaml", "rerun-incomplete: true"),
        ("profiles/slurm/profile.yaml", "executor: slurm\ncores: 4"),
        ("profiles/old/config.yaml", "executor: lsf"),
        (
            "profiles/old/config.v8+.yaml",
            "executor: slurm\nslurm-partition-config: p.yaml",
        ),
        ("home/snakemake/site/config.yaml", "executor: cluster-generic"),
    ):
        (here / place).parent.mkdir(parents=True, exist_ok=True)
        (here / place).write_text(name)
    assert executor("preflight") == "local"
    assert executor("--executor", "slurm") == "slurm"
    assert executor("--profile", "profiles/slurm", "-e", "dryrun") == "dryrun"
    assert executor("--workflow-profile=profiles/slurm") == "slurm"
    assert executor("--profile", "profiles/slurm/profile.yaml") == "slurm"
    old = submission_of(["--profile", "profiles/old"], here)
    assert old == replace(SLURM, chooses_partition=True, folder=here)
    assert submission_of(["--profile", "profiles/slurm"], here).limits_cores
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "site")
    assert executor() == "cluster-generic"
    assert executor("--profile", "none") == "local"


def report(here: Path, plan: str, *words: str) -> list[str]:
    (here / "fake.py").write_text(FAKE_SNAKEMAKE)
    (here / "rules.smk").write_text(RULES)
    (here / "plan.txt").write_text(plan)
    command = [sys.executable, "fake.py", *words]
    lines = requests_report(
        command,
        submission_of(command, here),
        targets=["paper"],
        prefix="",
        snakefiles=[here / "rules.smk"],
    )
    return list(lines)


def test_the_report(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert report(here, PLAN, "preflight") == []
    # By another interface of Snakemake's.
    assert report(here, PLAN, "--executor", "slurm") == []
    lines = report(here, PLAN, "preflight", "--executor", "slurm")
    assert lines[:4] == [
        "",
        "requests to the cluster, by its executor slurm",
        "==============================================",
        "planning paper, without running anything",
    ]
    assert lines[-2] == "submissions: 1; jobs that run here: 1"
    (here / "results").mkdir()
    monkeypatch.chdir(here / "results")
    words = ["--executor", "slurm", "--directory", "results", "preflight"]
    assert report(here, PLAN, *words)[-2] == "submissions: 1; jobs that run here: 1"


def test_the_names_of_a_module(here: Path) -> None:
    (here / "fake.py").write_text(FAKE_SNAKEMAKE.replace('"paper"', '"ours_paper"'))
    (here / "rules.smk").write_text(RULES)
    (here / "plan.txt").write_text(PLAN.replace("rule ", "rule ours_"))
    command = [sys.executable, "fake.py", "ours_preflight", "--executor", "slurm"]
    lines = requests_report(
        command,
        submission_of(command, here),
        targets=["paper"],
        prefix="ours_",
        snakefiles=[here / "rules.smk"],
    )
    assert "submissions: 1; jobs that run here: 1" in list(lines)


def test_a_plan_that_fails(here: Path) -> None:
    said = report(here, "", "preflight", "--executor", "slurm")[-1]
    assert (
        said
        == "WARNING: the requests are not known, because planning failed: no such task"
    )
