"""The package as a graph: its modules, and which imports which."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "convs2s"


def modules(root: Path) -> dict[str, Path]:
    """Return the name of each module of the package -> its file."""
    source = root / "src"
    found = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    assert len(found) > 100
    return found


def import_graph(root: Path) -> dict[str, set[str]]:
    """Return module -> the modules of the package that it imports, anywhere in its code."""
    files = modules(root)
    return {name: set(_imported(path, files)) for name, path in files.items()}


def _imported(path: Path, files: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in files:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in files else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)


def reachable(graph: dict[str, set[str]], *names: str) -> set[str]:
    """Return the modules and all that they import, directly or not."""
    seen: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += graph[name]
    return seen
