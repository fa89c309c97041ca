"""What each job asks for, read from Snakemake's dry run and from the files of rules."""

import pytest

from convs2s.costs.dry_run import ALL_CORES, Request, dry_run, local_rules, parse_plan

PLAN = """\
Building DAG of jobs...
Job stats:
job      count
-----  -------
total        9

[Sat Nov 28 17:08:31 2026] Group job g (jobs in lexicogr. order):

    [Sat Nov 28 17:08:31 2026]
    rule count:
        input: text.txt (update)
        output: a1.txt, a1.log
        jobid: 6
        threads: 4
        resources: tmpdir=/tmp, mem_mb=1000, mem=1 GB, disk_mb=<TBD>, runtime=120
    [Sat Nov 28 17:08:31 2026]
    rule count:
        output: a2.txt
        jobid: 7
        threads: 4
        resources: tmpdir=/tmp, mem_mb=1000, mem=1 GB, runtime=60
    [Sat Nov 28 17:08:31 2026]
    checkpoint join:
        input: a1.txt, a2.txt
        output: b.txt
        jobid: 5
        resources: tmpdir=/tmp, mem_mb=1500, mem=1 GB, disk_mb=<TBD>, runtime=30, slurm_account=lab
[Sat Nov 28 17:08:31 2026]
rule train:
    input: b.txt
    jobid: 3
    threads: 8
    resources: mem_mb=<TBD>, runtime=1440, slurm_extra=--a=b, --c 'd, e', gpu=2
[Sat Nov 28 17:08:31 2026]
Job 4: Making c1.txt
[Sat Nov 28 17:08:31 2026]
rule settings:
    output: d.txt
    jobid: 10
    resources: tmpdir=/tmp
Reasons:
    (check individual jobs above for details)
"""

RULES = """\
rule all:
    input:
        "a.txt",


rule fetch:
    output:
        "b.txt",
    localrule: True
    shell:
        "touch {output}"


if True:

    rule settings:
        output:
            "c.txt",
        localrule: True
        script:
            "settings.py"


rule train:
    params:
        localrule=True,
    shell:
        "touch {output}"


def helper():
    return True


checkpoint timed:
    script:
        "time.py"
"""
LATER_RULES = """\
rule decode:
    script:
        "decode.py"


rule put:
    input:
        "d.txt",
"""


def test_jobs_of_a_dry_run() -> None:
    plan = parse_plan(PLAN, {"settings"}, None)
    assert (plan.local, plan.not_shown) == (1, 1)
    train, _ = plan.requests
    assert train == Request(
        "train",
        "train",
        {
            "threads": "8",
            "mem_mb": "<TBD>",
            "runtime": "1440",
            "slurm_extra": "--a=b, --c 'd, e'",
            "gpu": "2",
        },
    )
    assert (train.number("mem_mb"), train.number("nodes"), train.gpus) == (
        None,
        None,
        2,
    )


def test_a_group_is_one_submission() -> None:
    group = parse_plan(PLAN, (), None).requests[-1]
    assert group.name == "group g (count, join)"
    assert group.rule == "RULE"
    assert group.resources["threads"] == "8"  # the two that run side by side
    assert group.resources["mem_mb"] == "2000"
    # The longer one, and what waits for both.
    assert group.resources["runtime"] == "150"
    assert group.resources["slurm_account"] == "lab"
    assert group.resources["disk_mb"] == "<TBD>"


@pytest.mark.parametrize(
    ("at_once", "threads", "runtime"), [(1, "4", "210"), (2, "8", "150")]
)
def test_translations_of_a_group_run_side_by_side_as_far_as_their_limit_lets_them(
    at_once: int, threads: str, runtime: str
) -> None:
    plan = PLAN.replace("mem_mb=1000", "translations=1, mem_mb=1000")
    group = parse_plan(plan, (), at_once).requests[-1]
    assert (group.resources["threads"], group.resources["runtime"]) == (
        threads,
        runtime,
    )


def test_gpus_by_gres_are_those_of_each_node() -> None:
    request = Request(
        "train", "train", {"gres": "gpu:a100:4", "gpu": "0", "nodes": "2"}
    )
    assert request.gpus == 8


def test_nothing_to_do() -> None:
    plan = parse_plan(
        "Nothing to be done (all requested files are present and up to date).", (), None
    )
    assert (plan.requests, plan.local, plan.not_shown) == ([], 0, 0)


def test_rules_that_nobody_submits() -> None:
    assert local_rules([RULES, LATER_RULES]) == {"all", "fetch", "settings", "put"}


def test_targets_take_the_place_of_the_one_that_is_asked_for() -> None:
    command = [
        "python",
        "--config",
        "a=b",
        "c=d",
        "preflight",
        "--set-resources",
        "x:y=1",
    ]
    planned = dry_run(command, "preflight", ["paper"], limits_cores=False)
    assert planned[:6] == [
        "python",
        "--config",
        "a=b",
        "c=d",
        "--set-resources",
        "x:y=1",
    ]
    assert planned[-4:] == ["--cores", str(ALL_CORES), "--", "paper"]
    command = ["python", "--cores", "4", "--", "preflight", "tables"]
    planned = dry_run(command, "preflight", ["paper"], limits_cores=True)
    assert planned[:4] == ["python", "--cores", "4", "--dry-run"]
    assert planned[-3:] == ["--", "paper", "tables"]
    assert planned.count("--cores") == 1
