"""How long things may be, and how untyped: the figures of CONTRIBUTING.md."""

import ast
import re
from pathlib import Path

from tests.house.package import modules

LONGEST_MODULE, LONGEST_FUNCTION = 650, 70
MOST_UNTYPED = 25

CODE = ("src", "workflow/scripts", "benchmarks", "examples", "tests", "tools")


def test_modules_and_functions_are_short(root: Path) -> None:
    paths = [path for folder in CODE for path in (root / folder).rglob("*.py")]
    assert len(paths) > 50
    too_long = []
    for path in paths:
        text = path.read_text("utf-8")
        assert text.count("\n") <= LONGEST_MODULE, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    too_long.append((str(path), node.name, length))
    assert too_long == []


def test_few_mappings_are_of_anything(root: Path) -> None:
    untyped = re.compile(r".*(?:Mapping\[str, Any\]|dict\[str, Any\]).*")
    texts = [path.read_text("utf-8") for path in modules(root).values()]
    lines = untyped.findall("\n".join(texts))
    assert len(lines) <= MOST_UNTYPED, "\n".join(lines)
