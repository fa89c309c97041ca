"""What jobs ask of a cluster, read from Snakemake's dry run, and what it can never grant."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from convs2s.costs.dry_run import ALL_CORES, Request, dry_run
from convs2s.costs.partitions import minutes, parse_sinfo, refusals
from convs2s.costs.requests import requests_report, submission_of, torch_has_gpus
from convs2s.files.text import write_lines
from tests.support.refusals import rows, says

SINFO = """\
some notice
cpu*|30:00|8|16000|4|(null)
gpu|2:00:00|16|64000|2|gpu:a100:4(S:0-1),gpu:v100:2
gpu|2:00:00|64+|256000+|1|(null)
long|infinite|8|16000|4|(null)
"""

PLAN = """\
[Sat Nov 28 17:08:31 2026] Group job g (jobs in lexicogr. order):

    [Sat Nov 28 17:08:31 2026]
    rule count:
        input: text.txt (update)
        output: a1.txt, a1.log
        threads: 4
        resources: translations=1, mem_mb=1000, disk_mb=<TBD>, runtime=20
    [Sat Nov 28 17:08:31 2026]
    rule count:
        output: a2.txt
        threads: 4
        resources: translations=1, mem_mb=1000, runtime=10
    [Sat Nov 28 17:08:31 2026]
    checkpoint join:
        input: a1.txt, a2.txt
        output: b.txt
        resources: mem_mb=1500, disk_mb=<TBD>, runtime=9, slurm_account=lab
[Sat Nov 28 17:08:31 2026]
rule train:
    input: b.txt
    threads: 8
    resources: mem_mb=<TBD>, runtime=110, slurm_extra=--a=b, -p gpu, gpu=2, nodes=1
rule decode:
    threads: 1
    resources: mem_mb=4000, runtime=60
rule decode:
    threads: 2
    resources: mem_mb=8000, runtime=6
rule decode:
    threads: 2
    resources: mem_mb=<TBD>, runtime=6
rule time:
    threads: 999999
    resources: nodes=2, mem_mb=1000000
[Sat Nov 28 17:08:31 2026]
Job 4: Making c1.txt
rule settings:
    output: d.txt
    resources: tmpdir=/tmp
rule all:
    input: d.txt
"""

ON_SLURM = "preflight --executor slurm"

REPORT = Path(__file__).with_name("data") / "requests.txt"

FAKE_SNAKEMAKE = """\
import sys
from pathlib import Path
assert sys.argv[-2:] == ["--", "PREFIXpaper"], sys.argv
print(Path("plan.txt").read_text() or sys.exit("no such task"))
"""

RULES = """\
rule all:
    input:
        "a.txt",


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


checkpoint count:
    script:
        "count.py"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, without profiles at home, without Slurm and a torch for GPUs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    spec = ModuleSpec("torch", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    (tmp_path / "version.py").write_text("cuda: Optional[str] = None\n")
    (tmp_path / "bin").mkdir()
    return tmp_path


def fake_sinfo(folder: Path, script: str) -> None:
    program = folder / "bin/sinfo"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def report(here: Path, plan: str, typed: str, prefix: str = "") -> str:
    (here / "fake.py").write_text(FAKE_SNAKEMAKE.replace("PREFIX", prefix))
    (here / "rules.smk").write_text(RULES)
    (here / "plan.txt").write_text(plan)
    command = [sys.executable, "fake.py", *typed.split()]
    lines = requests_report(
        command,
        submission_of(command, here),
        targets=["paper"],
        prefix=prefix,
        snakefiles=[here / "rules.smk"],
    )
    return "".join(f"{line}\n" for line in lines)


def test_the_report(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_sinfo(here, f"printf %s '{SINFO}'")
    assert report(here, PLAN, ON_SLURM) == REPORT.read_text()
    of_module = PLAN.replace("rule ", "rule ours_")
    said = report(here, of_module, f"ours_{ON_SLURM}", prefix="ours_")
    assert "submissions: 6; jobs that run here: 2" in said
    # Translations of a group run one after another, as far as their limit tells.
    said = report(here, PLAN, f"{ON_SLURM} --resources translations=1")
    assert "1        4          1,500       39" in said
    (here / "results").mkdir()
    monkeypatch.chdir(here / "results")
    typed = "--executor slurm --directory results preflight"
    said = report(here, "Nothing to be done", typed)
    assert said.splitlines()[4:] == ["submissions: 0; jobs that run here: 0"]


def test_what_is_not_known_is_said(here: Path) -> None:
    """Nothing is where jobs run here, or where another program runs Snakemake."""
    assert report(here, PLAN, "preflight") == ""
    assert report(here, PLAN, "--executor slurm") == ""
    failed = report(here, "", ON_SLURM)
    assert failed.endswith(" are not known, because planning failed: no such task\n")
    unchecked = "requests are not checked: sinfo is not here, or does not answer\n"
    assert report(here, PLAN, ON_SLURM).endswith(unchecked)
    fake_sinfo(here, "exit 1")
    assert report(here, PLAN, ON_SLURM).endswith(unchecked)
    assert unchecked not in report(here, PLAN, "preflight -e lsf")


# What is typed, and how its dry run begins and ends.
PLANNED = f"""
python --config a=b preflight -k => python --config a=b -k => --cores {ALL_CORES} -- paper
python --cores 4 -- preflight tables => python --cores 4 --dry-run => -- paper tables
"""


def test_targets_take_the_place_of_the_one_that_is_asked_for() -> None:
    for typed, start, end in rows(PLANNED):
        has_cores = "--cores" in typed
        words = dry_run(typed.split(), "preflight", ["paper"], limits_cores=has_cores)
        planned = " ".join(words)
        assert planned.startswith(f"{start} ")
        assert planned.endswith(f" {end}")
        assert planned.count("--cores") == 1


# What a build of torch says of itself, and whether it is one for GPUs.
BUILDS = r"""
cuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n => True
cuda = None\nhip = '6.4'\n => True
cuda = None\nhip = None\n => False
"""


def test_torch_for_gpus(here: Path) -> None:
    for text, has_gpus in rows(BUILDS):
        (here / "version.py").write_text(text)
        assert str(torch_has_gpus()) == has_gpus


WHO_RUNS_THE_JOBS = """
preflight => local
--executor slurm => slurm
--profile profiles/slurm -e dryrun => dryrun
--workflow-profile=profiles/slurm => slurm
--profile profiles/slurm/profile.yaml => slurm
--profile profiles/old => slurm
--profile site => cluster-generic
--profile none => local
"""


PROFILES = r"""
profiles/default/profile.yaml => rerun-incomplete: true
profiles/slurm/profile.yaml => executor: slurm\ncores: 4\nresources: translations=2
profiles/old/config.yaml => executor: lsf
profiles/old/config.v8+.yaml => executor: slurm\nslurm-partition-config: p
home/snakemake/site/config.yaml => executor: cluster-generic
"""


def test_who_runs_the_jobs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, text in rows(PROFILES):
        write_lines(here / place, [text])
    for words, executor in rows(WHO_RUNS_THE_JOBS):
        found = submission_of(words.split(), here)
        assert found.executor == executor
        assert found.limits_cores == ("profiles/slurm" in words)
        assert found.translations == (2 if "profiles/slurm" in words else None)
        assert found.chooses_partition == ("old" in words)
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "site")
    assert submission_of([], here).executor == "cluster-generic"


def test_times_of_slurm() -> None:
    times = "30:00", "1:00:00", "2-03:04:05", "n/a"
    assert [*map(minutes, times)] == [30, 60, 3064, float("inf")]


NEVER_GRANTED = """
threads=8 mem_mb=16000 runtime=30 gpu=0 nodes=1 =>
mem_mb=<TBD> threads=999999 =>
gpu=6 slurm_partition=gpu threads=16 =>
gpu=8 nodes=2 slurm_partition=gpu =>
gres=gpu:a100:4 gpu=0 nodes=2 slurm_partition=gpu =>
threads=64 slurm_partition=cpu,gpu =>
cpus_per_task=-1 threads=128 =>
runtime=60 slurm_extra=--partition=gpu =>
clusters=other runtime=60 =>
runtime=60 => 60 minutes ... cpu gives at most 30: ... :runtime=30, or ... :slurm_partition=gpu
runtime=1440 slurm_partition=cpu,gpu => 1,440 minutes ... at most 30: ... :slurm_partition=long
threads=65 mem_mb=16001 => 65 CPUs ... 8: --set-threads job=8 ... 16,001 MB ... 16,000: ... =16000
threads=20 tasks_per_node=4 => 80 CPUs on a node, partition cpu gives at most 8
threads=40 tasks=4 nodes=2 => 80 CPUs on a node, partition cpu gives at most 8
threads=8 mem_mb_per_cpu=40000 => 320,000 MB of memory on a node, partition cpu gives at most 16,000
nodes=5 => 5 such nodes, partition cpu gives at most 4: --set-resources job:nodes=4
threads=32 gpu=1 slurm_partition=gpu => 32 CPUs on a node, partition gpu gives at most 16
gpu=8 slurm_partition=gpu => 8 GPUs on a node, partition gpu gives at most 6: --config gpus=6
gpu=1 => 1 GPUs ... at most 0: --config device=cpu, or --set-resources job:slurm_partition=gpu
gpu=4 gpu_model=v100 slurm_partition=gpu => 4 v100 GPUs on a node, partition gpu gives at most 2
gres=gpu:a100:8 gpu=0 slurm_partition=gpu => 8 a100 GPUs ... 4: --set-resources job:gres=gpu:a100:4
slurm_partition=gpus => partition gpus, which is not here: ... one of cpu, gpu, long
"""


def test_requests_that_can_never_run() -> None:
    """The nodes with GPUs count, not larger ones beside them."""
    for asked, words in rows(NEVER_GRANTED):
        resources = dict(one.split("=", 1) for one in asked.split())
        found = refusals(Request("job", "job", resources), parse_sinfo(SINFO))
        assert bool(found) == bool(words), asked
        says("; ".join(found), words)


def test_a_partition_may_be_chosen_and_without_a_default_has_to_be_named() -> None:
    day = Request("job", "job", {"runtime": "1440"})
    assert refusals(day, parse_sinfo(SINFO), chooses_partition=True) == []
    (reason,) = refusals(day, parse_sinfo(SINFO.replace("*", "")))
    assert reason.startswith("no partition, and none is the default: set slurm_part")
