"""Of Snakemake the workflow uses what its documentation names, and changes nothing of it."""

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

DOCUMENTED = {"basedir", "current_basedir", "source_path", "pathvars", "cores"}
"""Attributes of `workflow` that rules may read (the last one for the threads of a timing)."""

THE_IMPORT = "from snakemake.utils import min_version"

SNAKEMAKES = {"workflow", "rules", "checkpoints", "logger", "job", "jobs", "snakemake"}
"""Names under which Snakemake's own objects are met."""

TRICKS = {
    "setattr",
    "delattr",
    "__setattr__",
    "__dict__",
    "__class__",
    "__builtins__",
    "globals",
}
"""Ways to change an object, or names, that no assignment shows."""

ASSIGNMENTS = {"=", "+=", "-=", "|=", "&="}


def faults_of_rules(text: str) -> Iterator[str]:
    """Yield what a file of rules does with Snakemake that its documentation does not name.

    Rules change no attribute of any object, so none of Snakemake's.
    """
    imports = re.findall(r"^\s*((?:import|from)\s+snakemake.*)$", text, re.MULTILINE)
    yield from (line for line in imports if line != THE_IMPORT)
    tokens = [
        token.string
        for token in tokenize.generate_tokens(StringIO(text).readline)
        if token.type in (tokenize.NAME, tokenize.OP)
    ]
    padded = ["", "", *tokens, ""]
    for owner, dot, name, after in zip(
        padded, padded[1:], padded[2:], padded[3:], strict=False
    ):
        if name in TRICKS or (name, after) == ("]", "="):
            yield f"{name} {after}"
        elif dot == "." and after in ASSIGNMENTS:
            yield f"{owner}.{name} {after}"
        elif dot == "." and not is_documented(owner, name):
            yield f"{owner}.{name}"


def is_documented(owner: str, name: str) -> bool:
    """Return whether rules may name an attribute."""
    if owner == "workflow":
        return name in DOCUMENTED
    return not name.startswith("_") and (owner, name) != ("sys", "modules")


def faults_of_python(text: str) -> Iterator[str]:
    """Yield where Python imports Snakemake, or changes or looks into one of its objects.

    What a module itself has given one of the names to is its own.
    """
    nodes = list(ast.walk(ast.parse(text)))
    given = [
        node
        for node in nodes
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
    ]
    targets = [one for node in given for one in getattr(node, "targets", [node])]
    own = {ast.unparse(getattr(one, "target", one)) for one in targets}
    snakemakes = SNAKEMAKES - own
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names if is_snakemakes(one.name))
            case ast.ImportFrom(module=str(module)) if is_snakemakes(module):
                yield module
            case (
                ast.Attribute(ctx=ast.Store() | ast.Del(), value=owner)
                | ast.Subscript(
                    ctx=ast.Store() | ast.Del(), value=ast.Attribute() as owner
                )
            ) if snakemakes & names_of(owner):
                yield ast.unparse(node)
            case ast.Call(
                func=ast.Name(id="setattr" | "delattr"), args=[owner, *_]
            ) if snakemakes & names_of(owner):
                yield ast.unparse(node)
            case ast.Attribute(attr=name, value=owner) if name.startswith("_") and (
                snakemakes & names_of(owner)
            ):
                yield ast.unparse(node)
            case ast.Subscript(
                value=ast.Attribute(attr="modules"), slice=ast.Constant(str(name))
            ):
                yield from filter(is_snakemakes, [name])
            case _:
                pass


def is_snakemakes(module: str) -> bool:
    """Return whether a module is Snakemake's, or a plugin of it."""
    return module.startswith("snakemake")


def names_of(node: ast.AST) -> set[str]:
    """Return the names in a chain of attributes and indices: of ``a.b[0].c`` a, b and c."""
    names = set()
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        node = node.value
    return names | ({node.id} if isinstance(node, ast.Name) else set())


def test_rules_use_what_is_documented(root: Path) -> None:
    files = [root / "Snakefile", root / "workflow/Snakefile", *root.glob("rules/*.smk")]
    assert len(files) > 10
    for path in files:
        assert list(faults_of_rules(path.read_text("utf-8"))) == [], path


def test_package_and_scripts_change_nothing_of_snakemake(root: Path) -> None:
    files = [*root.glob("src/convs2s/**/*.py"), *root.glob("workflow/**/*.py")]
    assert len(files) > 200
    for path in files:
        assert list(faults_of_python(path.read_text("utf-8"))) == [], path


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "from snakemake.io import strip_wildcard_constraints\n",
            "from snakemake.io import",
        ),
        ("import snakemake\n", "import snakemake"),
        ("x = workflow.rules\n", "workflow.rules"),
        ("if workflow.is_main_process:\n    pass\n", "workflow.is_main_process"),
        ("cores = workflow.resource_settings.cores\n", "workflow.resource_settings"),
        ("rule.log_modifier = None\n", "rule.log_modifier ="),
        ("rules.all.output['x'] = 1\n", "] ="),
        ("logger.level = 3\n", "logger.level ="),
        ("for step in steps:\n    step.benchmark += 'x'\n", "step.benchmark +="),
        ("setattr(workflow, 'x', 1)\n", "setattr"),
        ("x = sys.modules['snakemake.logging']\n", "sys.modules"),
        ("x = rules._rules\n", "rules._rules"),
        ("rule a:\n    output:\n        workflow.snakefile,\n", "workflow.snakefile"),
    ],
)
def test_a_patch_in_the_rules_is_found(text: str, fault: str) -> None:
    assert any(found.startswith(fault) for found in faults_of_rules(text))


@pytest.mark.parametrize(
    "text",
    [
        "from snakemake.jobs import Job",
        "import snakemake.io",
        "def f():\n    import snakemake_interface_executor_plugins",
        "snakemake.params.x = 1",
        "self.workflow.scheduler = 1",
        "workflow.globals['x'] = 1",
        "logger.handlers += [1]",
        "setattr(job.rule, 'log', 1)",
        "del rules.all",
        "x = workflow._rules",
        "sys.modules['snakemake.io'].expand = 1",
    ],
)
def test_a_patch_in_python_is_found(text: str) -> None:
    assert list(faults_of_python(text)) != []


@pytest.mark.parametrize(
    "text",
    [
        "job = 1",
        "rules[0] = x",
        "jobs = []\njobs[0].log[0] = x",
        "rules = [rule for rule in x]",
        "snakemake: Any",
        "x = job.label",
        "job(snakemake)",
    ],
)
def test_what_only_sounds_like_snakemakes_is_none_of_it(text: str) -> None:
    assert list(faults_of_python(text)) == []


def test_wildcards_are_constrained_before_all_rules(root: Path) -> None:
    """The plugin of S3 loses what comes later, and wildcards in a pathvar what comes earlier."""
    before, _ = (
        (root / "workflow/Snakefile").read_text("utf-8").split("rules/wildcards.smk")
    )
    for file in re.findall(r'include: "\.\./(rules/\w+\.smk)"', before):
        text = (root / file).read_text("utf-8")
        assert not re.search(r"^rule ", text, re.MULTILINE), file
        for pathvars in re.findall(r"^pathvars:\n((?: .*\n)+)", text, re.MULTILINE):
            assert "{" not in pathvars
