"""The package as a graph, read from the syntax trees: its modules, and which imports which."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = "convs2s"

Import = ast.Import | ast.ImportFrom


@cache
def modules(root: Path) -> dict[str, Path]:
    """Return the name of each module of the package -> its file."""
    source = root / "src"
    found = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    assert len(found) > 100
    return found


def imports_in(node: ast.AST) -> Iterator[Import]:
    """Yield the statements that import anything, but what only a type checker reads."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        for child in ast.iter_child_nodes(node):
            yield from imports_in(child)


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    return tuple(imports_in(ast.parse(path.read_text("utf-8"))))


def names_in(statement: Import) -> list[str]:
    """Return the modules that a statement may load: all but the first may be other names."""
    names = [alias.name for alias in statement.names]
    if isinstance(statement, ast.Import):
        return names
    assert statement.module, "the house imports by full names"
    return [statement.module, *(f"{statement.module}.{name}" for name in names)]


@cache
def import_graph(root: Path) -> dict[str, set[str]]:
    """Return module -> the modules of the package that it imports, anywhere in its code."""
    files = modules(root)
    return {
        module: {name for one in imports_of(path) for name in names_in(one)}
        & files.keys()
        for module, path in files.items()
    }


def reachable(graph: dict[str, set[str]], *names: str) -> set[str]:
    """Return the modules and all that they import, directly or not."""
    seen = set[str]()
    pending = {*names}
    while pending:
        seen |= pending
        pending = {other for name in pending for other in graph[name]} - seen
    return seen


def foreign(root: Path, statements: list[Import]) -> set[str]:
    """Return the imports of other packages that these lead to, through this package."""
    files = modules(root)
    named = {name for one in statements for name in names_in(one)} & files.keys()
    for module in reachable(import_graph(root), *named):
        statements = [*statements, *imports_of(files[module])]
    everywhere = {*sys.stdlib_module_names, PACKAGE}
    return {
        ast.unparse(one)
        for one in statements
        if names_in(one)[0].partition(".")[0] not in everywhere
    }
