"""Rules and scripts: short, of one stem with the function that they run, each in its place."""

import ast
import re
from pathlib import Path

from tests.support.rules import is_job, label, path_of, rules

LONGEST_RULE = 36
LONGEST_OF_ALL = "train_model"
"""It names every file that a training may read, and every option."""

SCRIPT_OF_ANOTHER_NAME = {
    "write_figure_table": "write_table",
    "score_baseline_list": "score_n_best",
    "rescore_baseline_list": "rescore_n_best",
    "tokenize_and_filter_part": "tokenize_and_filter",
    "tokenize_and_filter_validation": "tokenize_and_filter",
}
"""Rules that share a script, which has the name of what they do."""

SCRIPT = re.compile(r'"\.\./workflow/scripts/(\w+)\.py"')
NAME = re.compile(r"^rule (\w+)", re.MULTILINE)


def test_rules_are_short(root: Path) -> None:
    long = {label(rule) for rule in rules(root) if rule.count("\n") >= LONGEST_RULE}
    assert long == {LONGEST_OF_ALL}


def test_a_rule_and_its_script_share_a_name(root: Path) -> None:
    named = 0
    for rule in rules(root):
        names, scripts = NAME.search(rule), SCRIPT.findall(rule)
        if names and scripts:
            assert SCRIPT_OF_ANOTHER_NAME.get(names[1], names[1]) == scripts[0], rule
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
        kinds = {
            word
            for word in ("def", "rule")
            if re.search(rf"^{word} \w+", text, re.MULTILINE)
        }
        assert len(kinds) < 2, path


def test_a_shell_takes_no_path_unquoted(root: Path) -> None:
    """Snakemake quotes what ends in ``:q``; those of a training are quoted before."""
    sources = [*root.glob("rules/*.smk"), root / "src/convs2s/pipeline/process.py"]
    fields = [
        field
        for path in sources
        for field in re.findall(
            r"\{(?:input|output|log|params)\b[^}]*\}", path.read_text("utf-8")
        )
    ]
    assert fields
    assert {field for field in fields if not field.endswith(":q}")} <= {
        "{params.files}"
    }


def test_every_rule_that_runs_something_has_an_environment_that_exists(
    root: Path,
) -> None:
    for rule in rules(root):
        environments = re.findall(r'"\.\./envs/(\w+\.yaml)"', rule)
        runs = re.search(r"^ +(?:script|shell|run):", rule, re.MULTILINE)
        assert len(environments) == (1 if runs else 0), rule
        assert all((root / "envs" / name).is_file() for name in environments)


def test_every_job_states_a_log_which_its_benchmark_is_named_after(root: Path) -> None:
    jobs = [rule for rule in rules(root) if is_job(rule)]
    assert len(jobs) > 40
    for rule in jobs:
        log, benchmark = path_of(rule, "log"), path_of(rule, "benchmark")
        named = re.fullmatch(r"<logs>/(.*)\.log", log or "")
        assert named, rule
        makes_files = re.search(r"^ +output:", rule, re.MULTILINE)
        assert benchmark == (f"<benchmarks>/{named[1]}.tsv" if makes_files else None), (
            rule
        )
