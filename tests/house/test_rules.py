"""Rules and scripts: short, of one stem with the function that they run, each in its place."""

import ast
import re
from pathlib import Path

from tests.support.rules import base, is_job, path_of, rules

LONGEST_RULE = 25

SCRIPT = re.compile(r'"\.\./workflow/scripts/(\w+)\.py"')
NAME = re.compile(r"^(?:use rule \w+ as|rule) (\w+)", re.MULTILINE)


def test_rules_are_short(root: Path) -> None:
    assert [rule for rule in rules(root) if rule.count("\n") >= LONGEST_RULE] == []


def test_a_rule_and_its_script_share_a_name(root: Path) -> None:
    named = 0
    for rule in rules(root):
        names, scripts = NAME.search(rule), SCRIPT.findall(rule)
        if names and scripts:
            assert names[1] == scripts[0], rule
            named += 1
    assert named > 20


def test_a_script_runs_one_function_of_its_own_name(root: Path) -> None:
    for path in (root / "workflow/scripts").glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        imported = {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        called = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert path.stem in imported & called, path


def test_every_script_is_used(root: Path) -> None:
    used = {script for rule in rules(root) for script in SCRIPT.findall(rule)}
    assert used == {path.stem for path in root.glob("workflow/scripts/*.py")}


def test_no_function_stands_beside_a_rule(root: Path) -> None:
    """As ``snakemake --lint`` has it."""
    for path in root.glob("rules/*.smk"):
        text = path.read_text("utf-8")
        kinds = {word for word in ("def", "rule") if re.search(rf"^{word} \w+", text, re.MULTILINE)}
        assert len(kinds) < 2, path


def test_a_shell_takes_no_path_unquoted(root: Path) -> None:
    """Snakemake quotes what ends in ``:q``; the options with tables are quoted as they are made."""
    sources = [*root.glob("rules/*.smk"), root / "src/convs2s/pipeline/process.py"]
    fields = [
        field
        for path in sources
        for field in re.findall(r"\{(?:input|output|log|params)\b[^}]*\}", path.read_text("utf-8"))
    ]
    assert fields
    assert {field for field in fields if not field.endswith(":q}")} <= {"{params.tables}"}


def test_every_rule_that_runs_something_has_an_environment_that_exists(root: Path) -> None:
    for rule in rules(root):
        environments = re.findall(r'"\.\./envs/(\w+\.yaml)"', rule)
        runs = re.search(r"^ +(?:script|shell|run):", rule, re.MULTILINE)
        assert len(environments) == (1 if runs else 0), rule
        assert all((root / "envs" / name).is_file() for name in environments)


def test_every_job_states_a_log_which_its_benchmark_is_named_after(root: Path) -> None:
    jobs = [rule for rule in rules(root) if is_job(rule)]
    assert len(jobs) > 40
    for rule in jobs:
        log = path_of(rule, "log")
        assert path_of(rule, "benchmark") is None, rule
        if log is not None or not base(rule):  # else it has that of the rule that it takes over
            assert re.fullmatch(r"<logs>/.*\.log", log or ""), rule
