"""The workflow as others deploy it: snakedeploy, modules by git and by path (docs/own_workflow.md).

Planning and linting need Snakemake and what it requires, and none of the jobs' packages.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock

import pytest

from tests.support.bare_python import bare_python, run_bare
from tests.support.checkout import Checkout, Done, check_out

BLEU = "results/demo_en_fr/bleu.txt"
RAW = "results/demo_en_fr/corpus/raw/test.source.zst"
TAG = "v1"
PREFIX = 'prefix: "translation"'
TASK = """\
description: English to Dutch
languages: {source: en, target: nl}
corpus:
  train: [{source: data/train.en, target: data/train.nl}]
  tests: {test: [{source: data/test.en, target: data/test.nl}]}
hold_out: {every: 10}
"""


# A workflow of somebody's own, with the demo's score among its inputs.
OUTER = """\
configfile: "config/outer.yaml"


module convs2s:
    snakefile:
        {source}
    config:
        config["translation"]
{more}

use rule * from convs2s as {names}
"""


class Repository(Checkout):
    """A git repository of the workflow."""

    @property
    def gitfile(self) -> str:
        """What a module names as its Snakefile, in a clone, by a tag."""
        return f'gitfile("{self.folder}", path="workflow/Snakefile", tag="{TAG}")'

    @property
    def path(self) -> str:
        """The same as a path, with no git in it."""
        return f'"{self.folder}/workflow/Snakefile"'


@pytest.fixture(scope="module")
def repository(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Repository]:
    """The workflow as it stands, committed and tagged; git finds it under the URL of a host."""
    parent = tmp_path_factory.mktemp("deployment")
    folder = check_out(root, parent / "host/owner").folder
    hosts = f'[url "file://{parent}/host/"]\n    insteadOf = https://github.com/\n'
    (parent / "gitconfig").write_text(f"[user]\n    name = a\n    email = a@b\n{hosts}")
    # With these, git and Snakemake use no host but this machine.
    variables = {
        "GIT_CONFIG_GLOBAL": str(parent / "gitconfig"),
        "XDG_CACHE_HOME": str(parent / "cache"),
    }
    commit = f"git init --quiet; git add .; git commit -qm all; git tag {TAG}"
    with mock.patch.dict(os.environ, variables):
        subprocess.run(["sh", "-ec", commit], cwd=folder, check=True)
        yield Repository(folder)


def outer_workflow(
    folder: Path, source: str, config: str, *, more: str = "", names: str = "*"
) -> Checkout:
    """Write a workflow that has this one as a module; ``config`` is YAML on one line."""
    outer = Checkout(folder)
    text = OUTER.format(source=source, more=f"    {more}\n", names=names)
    outer.write("Snakefile", text)
    outer.write("config/outer.yaml", f"translation: {config}\nsamples: [mine]\n")
    return outer


@pytest.mark.slow
def test_snakedeploy_from_a_host(repository: Repository, tmp_path: Path) -> None:
    pytest.importorskip("snakedeploy")
    deploy = "snakedeploy deploy-workflow https://github.com/owner/convs2s deployed"
    Checkout(tmp_path).shell(f"{deploy} --tag {TAG}").succeeded()
    deployed = Checkout(tmp_path / "deployed")
    snakefile = deployed.read("workflow/Snakefile")
    assert f'path="workflow/Snakefile", tag="{TAG}"' in snakefile
    planned = deployed.snakemake("--dry-run").succeeded().planned
    assert planned["train_model"] == 2
    done = deployed.snakemake(RAW).succeeded()
    assert done.planned["write_demo_corpus"] == 1


def test_every_path_of_two_modules_has_the_prefix_of_its_own(
    repository: Repository, tmp_path: Path
) -> None:
    outer = outer_workflow(
        tmp_path, repository.path, "{scale: demo}", more=PREFIX, names="t_*"
    )
    first = outer.read("Snakefile")
    second = first[first.index("module ") :].replace(PREFIX, 'prefix: "other"')
    second = second.replace("module convs2s", "module other")
    second = second.replace("convs2s as t_*", "other as o_*")
    outer.write("Snakefile", first + second)
    options = ["--dry-run", "--printshellcmds", "--config", "unrelated=1", "--"]
    raw = RAW.replace("results", "other/results/scales/demo")
    done = outer.snakemake(*options, "t_paper", "t_report", raw).succeeded()
    assert done.planned["t_train_model"] > 4
    assert done.planned["t_write_table"] > 4
    assert "translation/results/scales/demo/paper/table1.md" in done.said
    assert re.findall(r"(?<![\w/])results/\S*", done.said) == []
    measured = re.findall(r"benchmark: (\S+)/results/scales/demo/bench", done.said)
    assert {*measured} == {"translation", "other"}


def test_jobs_find_what_has_the_prefix(repository: Repository, tmp_path: Path) -> None:
    options = "{tasks: [mine], published: ledger.jsonl}"
    outer = outer_workflow(tmp_path, repository.gitfile, options, more=PREFIX)
    # What a git source does not bring, and snakedeploy copies.
    for name in ("config", "profiles/default"):
        shutil.copytree(repository / name, outer / name, dirs_exist_ok=True)
    outer.write("config/tasks/mine.yaml", TASK)
    outer.write("ledger.jsonl", "")
    for name in ("train.en", "train.nl", "test.en", "test.nl"):
        outer.write(f"translation/data/{name}", "A man sees.\n" * 30)
    table = "translation/results/paper/table2.md"
    raw = "translation/results/mine/corpus/raw/test.source.zst"
    outer.snakemake(table, raw).succeeded()
    assert "not run" in outer.read(table)
    assert (outer / raw).is_file()
    made = {path.name for path in tmp_path.iterdir()} - {"config", "profiles"}
    assert made == {"Snakefile", ".snakemake", "ledger.jsonl", "translation"}
    assert outer.snakemake(table, raw).nothing_to_do
    # Without Snakemake's records a change is seen, too.
    shutil.rmtree(outer / ".snakemake/metadata")
    swapped = "{source: data/test.nl, target: data/test.en}"
    test_set = "{source: data/test.en, target: data/test.nl}"
    outer.write("config/tasks/mine.yaml", TASK.replace(test_set, swapped))
    done = outer.snakemake("--dry-run", table, raw).succeeded()
    assert done.planned == {"extract_corpus": 1}


def test_targets_and_files_of_the_outer_workflow_are_its_own(
    repository: Repository, tmp_path: Path
) -> None:
    outer = outer_workflow(tmp_path, repository.path, "{cores: 1}")
    own = 'rule all:\n    input: "mine.txt"\n\nrule mine:\n    output: "mine.txt"\n'
    text = outer.read("Snakefile")
    outer.write("Snakefile", f"{own}    shell: 'touch mine.txt'\n\n{text}")
    outer.write("config.yaml", "samples: [mine]\n")
    outer.write("config.local.yaml", "samples: [mine]\n")
    done = outer.snakemake("--dry-run", "--set-threads", "mine=1")
    assert done.planned == {"all": 1, "mine": 1}, done.said


def refused(outer: Checkout, environment: Mapping[str, str] = os.environ) -> str:
    """The one line with which a plan ends."""
    done = outer.snakemake("--dry-run", BLEU, environment=environment)
    assert done.code == 1
    (error,) = done.errors
    return error


def test_a_fault_of_the_config_is_told_and_a_source_without_settings_or_of_another_version(
    repository: Repository, tmp_path: Path
) -> None:
    outer = outer_workflow(tmp_path / "outer", repository.path, "{scael: demo}")
    place = "error: config of the module: "
    assert refused(outer) == f"{place}unknown key 'scael'; did you mean 'scale'?"
    outer = outer_workflow(tmp_path / "outer", repository.gitfile, "{}")
    settings = "read from git, which brings no settings: copy"
    assert refused(outer).startswith(f"error: this workflow is {settings}")
    version = '__version__ = "9.9.9"\n'
    other = Checkout(tmp_path).write("other/convs2s/__init__.py", version)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "other")}
    needs = rf"error: this workflow needs .* \S+, but {other.parent} is 9\.9\.9: "
    assert re.match(needs, refused(outer, environment))


def test_an_installed_package_of_the_same_version_serves_where_there_is_none(
    checkout: Checkout, tmp_path: Path
) -> None:
    shutil.move(checkout / "src", tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    checkout.snakemake("--dry-run", BLEU, environment=environment).succeeded()


FOUND = """
from importlib.util import find_spec
packages = ["torch", "numpy", "xopen", "zstandard", "convs2s"]
print(list(filter(find_spec, packages)))
"""


def test_lint_and_plan_need_snakemake_alone_and_a_module_brings_its_package(
    checkout: Checkout, tmp_path: Path
) -> None:
    # The configuration is YAML that pydantic checks: both come with Snakemake.
    python = bare_python(tmp_path / "bare", ["snakemake"])
    done = run_bare(python, "-c", FOUND, folder=tmp_path / "bare")
    assert done.stdout == "[]\n"

    def snakemake(folder: Path, *arguments: str) -> Done:
        command = ("-m", "snakemake", "--cores", "2", *arguments)
        done = run_bare(python, *command, folder=folder)
        return Done(done.returncode, done.stdout + done.stderr).succeeded()

    # Such as functions beside rules.
    snakemake(checkout.folder, "--lint")
    source = f'"{checkout.folder}/workflow/Snakefile"'
    outer = outer_workflow(tmp_path / "outer", source, "{}")
    planned = snakemake(outer.folder, "-n", "demo", "results/paper/table1.md").planned
    assert {"write_table", "summarize_runs", "demo"} <= planned.keys()
    assert planned["train_model"] == 2
