"""Which modules of other packages a script imports in the end, read from the syntax trees."""

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "convs2s"

Import = ast.Import | ast.ImportFrom

# What every environment has: the standard library, and this package by its path.
_EVERYWHERE = {*sys.stdlib_module_names, PACKAGE}


def imports_of_script(root: Path, script: str) -> set[str]:
    """Return the statements that import other packages when a rule's script runs.

    They are those of the script and of every module of this package that it imports, at its top or
    within a function; what only a type checker reads is left out.
    """
    tree = _tree(root / "workflow/scripts" / script)
    return _foreign(root / "src", _imports(tree, lazy=True), lazy=True)


def imports_of_command(root: Path, command: str) -> set[str]:
    """Return likewise those of ``python -m convs2s COMMAND``.

    What the other commands import within their functions is left out: a job does not run them.
    """
    source = root / "src"
    program = _imports(_tree(source / PACKAGE / "__main__.py"), lazy=False)
    functions = [
        node
        for path in (source / PACKAGE / "cli").glob("*.py")
        for node in _tree(path).body
        if isinstance(node, ast.FunctionDef) and node.name == f"_{command}"
    ]
    assert functions, f"convs2s.cli has no function _{command}"
    own = _imports(functions[0], lazy=True)
    return _foreign(source, program, lazy=False) | _foreign(source, own, lazy=True)


def _foreign(source: Path, imports: Iterable[Import], *, lazy: bool) -> set[str]:
    """Return the statements for other packages that these lead to, through this package."""
    found, pending = _named(source, imports)
    seen = set[Path]()
    while pending:
        file = pending.pop()
        seen.add(file)
        further, files = _named_in(source, file, lazy=lazy)
        found |= further
        pending |= files - seen
    return found


@cache
def _named_in(source: Path, file: Path, *, lazy: bool) -> tuple[set[str], set[Path]]:
    return _named(source, _imports(_tree(file), lazy=lazy))


def _named(source: Path, imports: Iterable[Import]) -> tuple[set[str], set[Path]]:
    """Return the statements that name other packages, and the files of this one that others do."""
    found, files = set[str](), set[Path]()
    for statement in imports:
        names = _names(statement)
        if any(name.partition(".")[0] not in _EVERYWHERE for name in names):
            found.add(ast.unparse(statement))
        files.update(file for name in names for file in _files(source, name))
    return found, files


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _imports(node: ast.AST, *, lazy: bool) -> Iterator[Import]:
    """Yield the import statements below a node; those of functions only where `lazy` says so."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
        return
    for child in _run(node):
        if lazy or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(child, lazy=lazy)


def _run(node: ast.AST) -> Iterable[ast.AST]:
    """Return the parts of a node, without those that only a type checker reads."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return node.orelse
    return ast.iter_child_nodes(node)


def _names(statement: Import) -> list[str]:
    """Return the modules that a statement may load: all but the first may be other names."""
    names = [alias.name for alias in statement.names]
    if isinstance(statement, ast.Import):
        return names
    assert statement.module, "the house imports by full names"
    return [statement.module, *(f"{statement.module}.{name}" for name in names)]


def _files(source: Path, name: str) -> Iterator[Path]:
    """Yield the files that are run to import a module of this package; none for another's."""
    parts = name.split(".")
    if parts[0] != PACKAGE:
        return
    for length in range(1, len(parts) + 1):
        path = source.joinpath(*parts[:length])
        yield from filter(Path.is_file, (path / "__init__.py", path.with_suffix(".py")))
