"""Files of the user's own that add networks, preparations and metrics (docs/extending.md).

Only what ``extensions`` of the user's configuration names is run. A plan runs each file down to its
first import of torch, which it does without; what builds a network runs the rest.
"""

import ast
import hashlib
import os
import sys
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import ConfigDict

from convs2s.config.messages import unknown, validated
from convs2s.config.section import DistinctItems, FileName, Section
from convs2s.config.yaml_file import option_files, read_yaml
from convs2s.errors import UserError

VARIABLE = "CONVS2S_EXTENSIONS"
"""Of the environment: the files, by which jobs of the workflow know what its configuration says."""

Registry = Literal["ARCHITECTURES", "PREPARATIONS", "METRICS"]
"""What an extension may define: a mapping from the names that it adds."""

_EMPTY: tuple[object, ...] = (None, [])


class _Stated(Section):
    """What config.yaml says of extensions, in a folder whose configuration nobody has read."""

    model_config = ConfigDict(extra="ignore")

    extensions: DistinctItems[FileName] = ()


def export_extensions(files: Iterable[str], root: Path) -> None:
    """Have this process, and those that it starts, know these files, named from ``root``.

    A UserError names one that is missing.
    """
    paths = [(root / file).absolute() for file in files]
    for path in paths:
        if not path.is_file():
            raise UserError(f"extensions: {path}: no such file")
    os.environ[VARIABLE] = os.pathsep.join(map(str, paths))


def extension_files() -> list[Path]:
    """Return the files that were exported, else those of config.yaml in the current folder."""
    if VARIABLE not in os.environ:
        stated: dict[str, object] = {}
        for name in option_files(Path.cwd()):
            content = read_yaml(Path(name), name)
            stated |= content if isinstance(content, dict) else {}
        export_extensions(validated(_Stated, stated, "config.yaml").extensions, Path.cwd())
    return [Path(file) for file in os.environ[VARIABLE].split(os.pathsep) if file]


def added(registry: Registry, own: Collection[str]) -> dict[str, object]:
    """Return what the extensions add to a registry, by name.

    A UserError refuses a name that the package (``own``) or another extension has.
    """
    found: dict[str, object] = {}
    for path in extension_files():
        names = getattr(_load(path).module, registry, {})
        for name in sorted(names.keys() & {*own, *found}):
            raise UserError(f"{path}: {registry}: the name '{name}' is taken: choose another")
        found |= names
    return found


def added_by_name(registry: Registry, name: object, own: Collection[str] = ()) -> Any:
    """Return what the extensions have under a name; a UserError refuses an unknown one."""
    known = added(registry, own)
    if not isinstance(name, str) or name not in known:
        noun = registry.lower().removesuffix("s")
        advice = "extensions of config.yaml add others: docs/extending.md"
        raise UserError(f"{unknown(noun, name, [*own, *known])} ({advice})")
    return known[name]


def check_added(
    where: str, registry: Registry, name: str | None, own: Collection[str] = ()
) -> None:
    """Check that a name, if one is stated, is the package's (``own``) or an extension's.

    A UserError begins with ``where``.
    """
    if name is not None and name not in own:
        try:
            added_by_name(registry, name, own)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None


def files_with(registry: Registry) -> list[Path]:
    """Return the extensions that add to a registry."""
    return [path for path in extension_files() if hasattr(_load(path).module, registry)]


def run_rest(section: type[Section]) -> None:
    """Run what follows the first import of torch in the file of a class, unless it has been run."""
    _load(Path(section.__module__)).run_rest()


def digest_of_extension(of: type | Callable[..., object]) -> str | None:
    """Return a digest of the code of the file that a name comes from; None: of this package."""
    path = Path(of.__module__)
    if path.suffix != ".py":
        return None
    return hashlib.sha256(code_of(path.read_text("utf-8")).encode()).hexdigest()[:16]


def code_of(text: str) -> str:
    """Return what a file of Python runs, comments and docstrings aside; every Python has it so."""
    return repr(_plain(_WithoutWords().visit(ast.parse(text))))


def _plain(node: object) -> object:
    """Return a syntax tree as lists; each version of Python has further fields, empty ones."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    fields = [(name, _plain(value)) for name, value in ast.iter_fields(node) if value not in _EMPTY]
    return [type(node).__name__, *fields]


class _WithoutWords(ast.NodeTransformer):
    """Drops docstrings, and the strings that describe a constant or a field."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Keep a statement unless it is a constant alone."""
        return None if isinstance(node.value, ast.Constant) else node


class _Extension:
    """A file, which is run in two parts; its module goes by the file's path."""

    def __init__(self, path: Path, text: str) -> None:
        statements = ast.parse(text, path).body
        numbers = (number for number, each in enumerate(statements) if _imports_torch(each))
        first = next(numbers, len(statements))
        self.module, self._rest = ModuleType(str(path)), statements[first:]
        self.module.__file__ = str(path)
        sys.modules[str(path)] = self.module  # where pydantic and inspect look for it
        self._run(statements[:first])

    def run_rest(self) -> None:
        rest, self._rest = self._rest, []
        self._run(rest)

    def _run(self, statements: list[ast.stmt]) -> None:
        code = compile(ast.Module(statements, []), self.module.__name__, "exec")
        exec(code, self.module.__dict__)


_read = cache(_Extension)  # an edited file is another text


def _load(path: Path) -> _Extension:
    return _read(path, path.read_text("utf-8"))


def _imports_torch(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import):
        return any(alias.name.partition(".")[0] == "torch" for alias in statement.names)
    return isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("torch")
