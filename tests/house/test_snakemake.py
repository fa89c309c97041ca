"""Of Snakemake the workflow uses what its documentation names, and changes nothing of it."""

import re
from collections.abc import Iterable
from pathlib import Path

OBJECTS = r"\b(?:workflow|rules|checkpoints|logger|jobs?|snakemake)\b"
"""Names under which Snakemake's own objects are met."""

EVERYWHERE = (
    r"^\s*(?:import|from) snakemake(?!\.utils import min_version$).*",
    r"sys\.modules\[.snakemake",
    rf"(?:set|del)attr\({OBJECTS}",
    rf"\bdel {OBJECTS}",
    rf"{OBJECTS}[\w.\[\]'\"]*[.\]]\w* [-+|&]?=(?!=)",
    rf"{OBJECTS}(?:\.\w+)*\._\w+",
)
"""Imports, assignments, and names that are Snakemake's alone."""

IN_RULES = (
    r"sys\.modules|\bsetattr|\bdelattr|\bglobals\b",
    # Attributes that the documentation names; the last one is for the threads of a timing.
    r"\bworkflow\.(?!basedir|current_basedir|source_path|pathvars|cores)\w+",
    r"\w\.\w+ [-+|&]?=(?!=)|\] [-+|&]?=(?!=)",
    r"\w\._\w+",
)
"""Rules change no attribute of any object, so none of Snakemake's."""


def faults(text: str, patterns: Iterable[str]) -> list[str]:
    return [match[0] for one in patterns for match in re.finditer(one, text, re.M)]


def test_nothing_changes_snakemake(root: Path) -> None:
    rules = [root / "Snakefile", root / "workflow/Snakefile", *root.glob("rules/*.smk")]
    code = [*root.glob("src/convs2s/**/*.py"), *root.glob("workflow/**/*.py")]
    assert len(rules) > 10
    assert len(code) > 200
    for path in [*rules, *code]:
        patterns = EVERYWHERE + IN_RULES if path in rules else EVERYWHERE
        assert faults(path.read_text("utf-8"), patterns) == [], path


PATCHES = """\
from snakemake.io import strip_wildcard_constraints
self.workflow.scheduler = 1
logger.handlers += [1]
setattr(job.rule, 'log', 1)
x = rules._rules
sys.modules['snakemake.io'].expand = 1
"""
PATCHES_IN_RULES = """\
x = workflow.rules
    step.benchmark += 'x'
workflow.__dict__
"""


def test_a_patch_is_found() -> None:
    for line in PATCHES.splitlines():
        assert faults(line, EVERYWHERE), line
    for line in PATCHES_IN_RULES.splitlines():
        assert faults(line, IN_RULES), line
    assert not faults("job = 1\nx = job.label == 2\njob(snakemake)", EVERYWHERE)


def test_wildcards_are_constrained_before_all_rules(root: Path) -> None:
    """The plugin of S3 loses what comes later, and wildcards in a pathvar what comes earlier."""
    text = (root / "workflow/Snakefile").read_text("utf-8")
    before, _ = text.split("rules/wildcards.smk")
    for file in re.findall(r'include: "\.\./(rules/\w+\.smk)"', before):
        text = (root / file).read_text("utf-8")
        assert not re.search(r"^rule |^pathvars:\n(?: .*\n)*.*\{", text, re.M), file
