"""Planning and linting need Snakemake and what it requires, and none of the jobs' packages."""

from pathlib import Path

from tests.support.bare_python import bare_python, run_bare
from tests.support.checkout import Checkout, Done
from tests.workflow.deployment import outer_workflow

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
    outer = outer_workflow(
        tmp_path / "outer", f'"{checkout.folder}/workflow/Snakefile"', "{}"
    )
    planned = snakemake(outer.folder, "-n", "demo", "results/paper/table1.md").planned
    assert {"write_table", "summarize_runs", "demo"} <= planned.keys()
    assert planned["train_model"] == 2
