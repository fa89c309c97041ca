"""The package as a graph: its modules, and which imports which."""

from pathlib import Path

from tests.house.imports import PACKAGE, names_in, statements_of


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
    graph = {}
    for module, path in files.items():
        statements = statements_of(path, lazy=True)
        named = {name for statement in statements for name in names_in(statement)}
        graph[module] = named & files.keys()
    return graph


def reachable(graph: dict[str, set[str]], *names: str) -> set[str]:
    """Return the modules and all that they import, directly or not."""
    seen = set[str]()
    pending = {*names}
    while pending:
        seen |= pending
        pending = {other for name in pending for other in graph[name]} - seen
    return seen
