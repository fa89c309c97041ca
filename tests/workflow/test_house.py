"""What holds for the code as a whole: sizes, imports, and that every part is in its place."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.rules import rules

LONGEST_RULE, LONGEST_MODULE, LONGEST_FUNCTION = 25, 400, 60

RUN_A_NETWORK = {
    "attention_map.py",
    "decode.py",
    "import_released.py",
    "list_n_best.py",
    "preflight.py",
    "score_n_best.py",
    "time_decoding.py",
}


def modules(root: Path) -> list[Path]:
    folders = ("src", "workflow/scripts", "benchmarks", "tests")
    found = [path for folder in folders for path in (root / folder).rglob("*.py")]
    assert len(found) > 50
    return found


def test_rules_are_short(root: Path) -> None:
    assert [rule for rule in rules(root) if rule.count("\n") >= LONGEST_RULE] == []


def test_modules_and_functions_are_short(root: Path) -> None:
    for path in modules(root):
        text = path.read_text("utf-8")
        assert text.count("\n") <= LONGEST_MODULE, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                assert length <= LONGEST_FUNCTION, f"{path}: {node.name}"


def test_package_knows_nothing_of_snakemake(root: Path) -> None:
    for path in root.glob("src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "snakemake" for name in names), path


@pytest.mark.parametrize("package", ["text", "scoring"])
def test_text_and_scoring_load_without_torch(root: Path, package: str) -> None:
    folder = root / "src/convs2s" / package
    names = [
        ".".join(path.relative_to(root / "src").with_suffix("").parts)
        for path in sorted(folder.rglob("*.py"))
    ]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=root, check=False)
    assert done.returncode == 0


def test_planning_and_jobs_without_a_network_load_no_torch(root: Path) -> None:
    scripts = {path.name: path.read_text("utf-8") for path in root.glob("workflow/scripts/*.py")}
    trees = [ast.parse(text) for name, text in scripts.items() if name not in RUN_A_NETWORK]
    nodes = [node for tree in trees for node in tree.body]
    lines = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    text = "".join(path.read_text("utf-8") for path in root.glob("rules/*.smk"))
    lines += re.findall(r"^from convs2s[^(\n]*(?:\([^)]*\))?", text, re.MULTILINE)
    program = "\n".join([*sorted(set(lines)), "import sys", "sys.exit('torch' in sys.modules)"])
    done = subprocess.run([sys.executable, "-c", program], cwd=root, check=False)
    assert done.returncode == 0


def test_every_script_is_used_by_the_rule_that_carries_its_fingerprint(root: Path) -> None:
    used = set()
    for rule in rules(root):
        scripts = set(re.findall(r'"\.\./workflow/scripts/(\w+\.py)"', rule))
        fingerprints = set(re.findall(r'script_code\("(\w+\.py)"\)', rule))
        assert fingerprints <= scripts, rule
        used |= scripts
    assert used == {path.name for path in root.glob("workflow/scripts/*.py")}


def test_every_rule_that_runs_something_has_an_environment_that_exists(root: Path) -> None:
    for rule in rules(root):
        environments = re.findall(r'"\.\./envs/(\w+\.yaml)"', rule)
        runs = re.search(r"^ +(?:script|shell|run):", rule, re.MULTILINE)
        assert len(environments) == (1 if runs else 0), rule
        assert all((root / "envs" / name).is_file() for name in environments)
