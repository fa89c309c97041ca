"""Each rule's conda environment installs all that its job imports, in the tests' versions."""

import ast
import json
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
import yaml

from convs2s import __version__
from tests.house.package import Import, foreign, imports_in, imports_of
from tests.house.rules import environment, rules, script, stated
from tests.support.bare_python import bare_python, run_bare
from tests.support.checkout import Checkout

NAMES = ("plot", "score", "text", "train")

COMMAND = r"python -m convs2s (\w+)"

# Imported where the configuration asks for it alone; whoever does adds it (docs/preparation.md).
BY_CHOICE = {"eflomal", "tensorboard"}

# Reads import statements; says which of them fail, and for want of which module.
_TRY = """
import json, sys
missing = {}
for statement in json.load(sys.stdin):
    try:
        exec(statement)
    except ImportError as error:
        missing[statement] = error.name or str(error)
print(json.dumps(missing))
"""


def environments(root: Path) -> dict[str, list[str]]:
    """What pip installs into each environment, by its name."""
    found = {}
    for path in root.glob("envs/*"):
        parts = yaml.safe_load(path.read_text("utf-8"))["dependencies"]
        (found[path.stem],) = (part["pip"] for part in parts if isinstance(part, dict))
    return found


@cache
def jobs(root: Path) -> dict[str, set[str]]:
    """Environment -> the statements that import other packages in its jobs.

    They are those of scripts, commands and all modules that these import, at the top or within a
    function.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    for rule in rules(root):
        statements: list[Import] = []
        if ran := script(rule):
            statements = [*imports_of(root / "workflow/scripts" / ran)]
        elif asked := stated(COMMAND, rule):
            for path in (root / "src/convs2s/cli").glob("*.py"):
                for node in ast.parse(path.read_text("utf-8")).body:
                    if getattr(node, "name", None) == f"_{asked}":
                        statements += imports_in(node)
        if place := environment(rule):
            found[place] |= foreign(root, statements)
    return found


def test_every_job_is_looked_at(root: Path) -> None:
    scripts = {path.name for path in root.glob("workflow/scripts/*.py")}
    assert {script(rule) for rule in rules(root)} - {None} == scripts
    assert {stated(COMMAND, rule) for rule in rules(root)} - {None} == {"train"}
    assert set(jobs(root)) == set(environments(root)) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_environment_has_all_that_its_jobs_import(
    root: Path, name: str, tmp_path: Path
) -> None:
    packages = environments(root)[name]
    constraints = (root / "constraints.txt").read_text("utf-8").splitlines()
    assert set(packages) <= set(constraints)
    python = bare_python(tmp_path / "environment", packages)
    statements = json.dumps(sorted(jobs(root)[name]))
    done = run_bare(python, "-c", _TRY, folder=tmp_path, text=statements)
    assert done.returncode == 0, done.stderr
    for statement, module in json.loads(done.stdout).items():
        assert module.partition(".")[0] in BY_CHOICE, statement
    # Jobs without a network have a light one.
    has_torch = any(package.startswith("torch") for package in packages)
    assert has_torch == (name == "train")


def test_job_states_its_version_where_the_package_is_not_installed(
    checkout: Checkout, tmp_path: Path
) -> None:
    program = "from convs2s.manifest import manifest; print(manifest()['convs2s'])"
    # To read files.
    python = bare_python(tmp_path / "environment", ["xopen", "zstandard"])
    done = run_bare(python, "-c", program, folder=checkout / "src")
    assert done.stdout.strip() == __version__, done.stderr
