"""How long things may be, and how untyped: the figures of CONTRIBUTING.md."""

import ast
import re
from pathlib import Path

LONGEST_MODULE, LONGEST_FUNCTION = 650, 70
MOST_UNTYPED = 25

CODE = ("src", "workflow/scripts", "benchmarks", "examples", "tests", "tools")


def modules(root: Path) -> list[Path]:
    found = [path for folder in CODE for path in (root / folder).rglob("*.py")]
    assert len(found) > 50
    return found


def test_modules_are_short(root: Path) -> None:
    for path in modules(root):
        assert path.read_text("utf-8").count("\n") <= LONGEST_MODULE, path


def test_functions_are_short(root: Path) -> None:
    too_long = [
        f"{path.relative_to(root)}: {node.name} has {length} lines"
        for path in modules(root)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1)
        > LONGEST_FUNCTION
    ]
    assert too_long == []


def test_few_mappings_are_of_anything(root: Path) -> None:
    untyped = re.compile(r"Mapping\[str, Any\]|dict\[str, Any\]")
    lines = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in (root / "src").rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if untyped.search(line)
    ]
    assert len(lines) <= MOST_UNTYPED, "\n".join(lines)
