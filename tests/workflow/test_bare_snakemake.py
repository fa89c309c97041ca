"""Planning and linting need Snakemake and what it requires, and none of the jobs' packages."""

from pathlib import Path

import pytest

from tests.support.bare_python import bare_python, run_bare
from tests.support.checkout import Checkout, Done
from tests.workflow.deployment import make_repository, outer_workflow

# The configuration is YAML that pydantic checks: both come with Snakemake.
PLANNING = ["snakemake"]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with Snakemake alone."""
    return bare_python(tmp_path_factory.mktemp("bare"), PLANNING)


def snakemake(python: Path, checkout: Checkout, *arguments: str) -> Done:
    """Run Snakemake with that Python, and all that Snakemake starts in turn."""
    arguments = ("-m", "snakemake", "--cores", "2", *arguments)
    done = run_bare(python, *arguments, folder=checkout.folder)
    return Done(done.returncode, done.stdout + done.stderr)


def test_the_workflow_is_linted_without_the_packages_of_jobs(
    bare: Path, checkout: Checkout
) -> None:
    for package in ("torch", "numpy", "xopen", "zstandard", "convs2s"):
        done = run_bare(bare, "-c", f"import {package}", folder=bare.parent)
        assert f"No module named '{package}'" in done.stderr
    snakemake(bare, checkout, "--lint").succeeded()


PAPER = """
plot_phrase_states plot_bleu_by_length plot_bleu_by_layers attend_to_example plot_example
write_report
"""


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        ("demo paper results/wmt14_en_fr/bleu.txt", "write_table summarize_runs demo"),
        ("--directory .test", "train_model"),
        pytest.param("paper --config scale=demo", PAPER, marks=pytest.mark.slow),
    ],
)
def test_targets_are_planned(
    bare: Path, checkout: Checkout, arguments: str, rules: str
) -> None:
    done = snakemake(bare, checkout, "-n", *arguments.split()).succeeded()
    assert {*rules.split()} <= done.planned.keys()
    if rules != PAPER:  # licensed files are missing
        assert "evaluate_rouge" not in done.planned


def test_a_module_brings_its_package(bare: Path, root: Path, tmp_path: Path) -> None:
    repository = make_repository(root, tmp_path)
    outer = outer_workflow(tmp_path / "outer", repository.path, "{}")
    done = snakemake(bare, outer, "-n", "results/demo_en_fr/bleu.txt").succeeded()
    assert done.planned["train_model"] == 2
