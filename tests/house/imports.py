"""Which modules of other packages a script imports in the end, read from the syntax trees."""

import ast
import sys
from collections.abc import Iterator
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
    file = root / "workflow/scripts" / script
    return _foreign(root / "src", statements_of(file, lazy=True), lazy=True)


def imports_of_command(root: Path, command: str) -> set[str]:
    """Return likewise those of ``python -m convs2s COMMAND``.

    What the other commands import within their functions is left out: a job does not run them.
    """
    source = root / "src"
    program = statements_of(source / PACKAGE / "__main__.py", lazy=False)
    (function,) = (
        node
        for path in (source / PACKAGE / "cli").glob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == f"_{command}"
    )
    own = tuple(_imports(function, lazy=True))
    return _foreign(source, program, lazy=False) | _foreign(source, own, lazy=True)


def _foreign(source: Path, imports: tuple[Import, ...], *, lazy: bool) -> set[str]:
    """Return the statements for other packages that these lead to, through this package."""
    found = set()
    pending = [*imports]
    seen = set[Path]()
    while pending:
        statement = pending.pop()
        for name in names_in(statement):
            package, *parts = name.split(".")
            if package not in _EVERYWHERE:
                found.add(ast.unparse(statement))
            path = source / PACKAGE
            for part in ["", *parts] if package == PACKAGE else []:
                path = path / part
                for file in (path / "__init__.py", path.with_suffix(".py")):
                    if file not in seen and file.is_file():
                        seen.add(file)
                        pending += statements_of(file, lazy=lazy)
    return found


@cache
def statements_of(path: Path, *, lazy: bool) -> tuple[Import, ...]:
    """Return the imports that are run with a file; those of functions where `lazy` says so."""
    return tuple(_imports(ast.parse(path.read_text("utf-8")), lazy=lazy))


def _imports(node: ast.AST, *, lazy: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
        return
    children = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        children = [*node.orelse]
    for child in children:
        if lazy or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(child, lazy=lazy)


def names_in(statement: Import) -> list[str]:
    """Return the modules that a statement may load: all but the first may be other names."""
    names = [alias.name for alias in statement.names]
    if isinstance(statement, ast.Import):
        return names
    assert statement.module, "the house imports by full names"
    return [statement.module, *(f"{statement.module}.{name}" for name in names)]
