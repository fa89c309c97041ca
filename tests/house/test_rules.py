"""Rules and scripts: short, of one stem with the function that they run, each in its place."""

import re
from pathlib import Path

from tests.house.rules import environment, label, rules, script, stated

LONGEST_RULE = 31
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


def test_rules_are_short_and_say_what_they_make(root: Path) -> None:
    """As ``snakemake --list`` shows it."""
    assert [rule for rule in rules(root) if not stated(r':\n *(""")', rule)] == []
    long = {label(rule) for rule in rules(root) if rule.count("\n") >= LONGEST_RULE}
    assert long == {LONGEST_OF_ALL}


def test_a_rule_its_script_and_its_function_share_a_name(root: Path) -> None:
    used = set()
    for rule in rules(root):
        if (path := script(rule)) and rule.startswith("rule"):
            name = label(rule)
            assert f"{SCRIPT_OF_ANOTHER_NAME.get(name, name)}.py" == path, rule
        used.add(path)
    for file in (root / "workflow/scripts").glob("*.py"):
        assert file.name in used, file
        assert re.search(rf"\b{file.stem}\(", file.read_text("utf-8")), file


def test_a_shell_takes_no_path_unquoted(root: Path) -> None:
    """Snakemake quotes what ends in ``:q``; those of a training are quoted before."""
    sources = [*root.glob("rules/*.smk"), root / "src/convs2s/pipeline/process.py"]
    text = "".join(path.read_text("utf-8") for path in sources)
    fields = re.findall(r"\{(?:input|output|log|params)\b[^}]*\}", text)
    assert {field for field in fields if not field.endswith(":q}")} == {
        "{params.files}"
    }


def test_every_job_that_makes_files_asks_whether_they_are_out_of_date(
    root: Path,
) -> None:
    """All but a training, whose settings and data are files."""
    unasked = set()
    for rule in rules(root):
        makes_files = re.search(r"^ +output:", rule, re.MULTILINE)
        if makes_files and f'changed=changed("{label(rule)}"' not in rule:
            unasked.add(label(rule))
    assert unasked == {"train_model"}


def path_of(rule: str, section: str) -> str | None:
    """Return the one path of a rule's log or benchmark, if it states one."""
    return stated(rf'^ +{section}:\n +"([^"]+)",?$', rule)


def test_every_job_states_an_environment_and_a_log_which_its_benchmark_is_named_after(
    root: Path,
) -> None:
    runs = re.compile(r"^ +(?:script|shell|run):", re.MULTILINE)
    jobs = list(filter(runs.search, rules(root)))
    assert len(jobs) > 40
    for rule in jobs:
        assert (root / f"envs/{environment(rule)}.yaml").is_file(), rule
        log = path_of(rule, "log") or ""
        named = re.fullmatch(r"<logs>/(.*)\.log", log)
        assert named, rule
        makes_files = re.search(r"^ +output:", rule, re.MULTILINE)
        benchmark = f"<benchmarks>/{named[1]}.tsv" if makes_files else None
        assert path_of(rule, "benchmark") == benchmark, rule
