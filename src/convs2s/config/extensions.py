"""Files of the user's own that add networks, preparations and metrics (docs/extending.md).

Only what ``extensions`` of the user's configuration names is run. A plan runs each file down to its
first import of torch, which it does without; what builds a network runs the rest.
"""

import ast
import hashlib
import os
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from convs2s.config.messages import unknown, validated
from convs2s.config.options import Options
from convs2s.config.yaml_file import option_files
from convs2s.errors import UserError

VARIABLE = "CONVS2S_EXTENSIONS"
"""Of the environment: the files, by which jobs of the workflow know what its configuration says."""

Registry = Literal["ARCHITECTURES", "PREPARATIONS", "METRICS"]
"""What an extension may define: a mapping from the names that it adds."""

# What a value of each registry is, and the methods that it needs. Not the class of networks itself:
# architecture.py, which has it, imports this module.
_KINDS: Mapping[Registry, tuple[str, Sequence[str]]] = {
    "ARCHITECTURES": ("a subclass of NetworkSettings with build", ("count_parameters", "build")),
    "PREPARATIONS": ("a class with prepare and restore", ("prepare", "restore")),
    "METRICS": ("a function", ("__call__",)),
}


def export_extensions(files: Iterable[str], root: Path, *, add: bool = False) -> None:
    """Have this process, and those that it starts, know these files, named from ``root``.

    ``add``: beside those that it knows, as two modules of one workflow are read in one process.
    """
    known = os.environ.get(VARIABLE, "").split(os.pathsep) if add else []
    for file in files:
        path = str((root / file).absolute())
        if os.pathsep in path:
            raise UserError(f"extensions: {path}: rename what has '{os.pathsep}' in its name")
        known.append(path)
    files_once = [path for path in dict.fromkeys(known) if path]
    os.environ[VARIABLE] = os.pathsep.join(files_once)


def extension_files() -> list[Path]:
    """Return the files that were exported, else those of config.yaml in the current folder."""
    if VARIABLE not in os.environ:
        stated: tuple[str, ...] = ()
        for name, content in option_files(Path.cwd()).items():
            if isinstance(content, dict) and "extensions" in content:
                stated = validated(Options, {"extensions": content["extensions"]}, name).extensions
        export_extensions(stated, Path.cwd())
    return [Path(file) for file in os.environ[VARIABLE].split(os.pathsep) if file]


def added(registry: Registry, own: Collection[str]) -> dict[str, object]:
    """Return what extensions add to a registry: name -> value.

    Raises:
        UserError: A name is one of the package's (``own``), or two extensions add it.
    """
    found: dict[str, object] = {}
    for path in extension_files():
        names = _names(path, registry)
        for name in sorted(names):
            if name in own or name in found:
                raise UserError(f"{path}: {registry}: the name '{name}' is taken: choose another")
        found |= names
    return found


def check_added(where: str, registry: Registry, name: str | None, own: Collection[str] = ()) -> Any:
    """Return what an extension has under a name, None of the package's ``own``, or of no name.

    Raises:
        UserError: Nothing has the name; begins with ``where``.
    """
    if name is None or name in own:
        return None
    known = added(registry, own)
    if name not in known:
        words = unknown(registry.lower().removesuffix("s"), name, [*own, *known])
        raise UserError(f"{where}: {words} (docs/extending.md: extensions of config.yaml)")
    return known[name]


def run_rest(section: type) -> None:
    """Run what follows the first import of torch in the file of a class, unless it has been run."""
    module = sys.modules[section.__module__]
    _run(module, module.__dict__.pop("_rest", []))


def digest_of_extension(registry: Registry, name: str) -> str | None:
    """Return a digest of the code of the extension that adds a name; None: none does."""
    for path in extension_files():
        if name in _names(path, registry):
            code = code_of(_text(path))
            return hashlib.sha256(code.encode()).hexdigest()[:16]
    return None


@contextmanager
def failures_of_code(where: object) -> Iterator[None]:
    """Turn what an extension's code raises into a UserError with its file and line, if known."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # of code that is the user's own: whatever it raises
        place = where
        own = [str(file) for file in extension_files()]
        for step in traceback.extract_tb(error.__traceback__):
            if step.filename in own:
                place = f"{step.filename}:{step.lineno}"
        if isinstance(error, SyntaxError):
            place = f"{error.filename}:{error.lineno}"
        raise UserError(f"{place}: {type(error).__name__}: {error}") from error


def code_of(text: str) -> str:
    """Return what a file of Python runs: its syntax tree without comments and docstrings."""
    tree = _WithoutWords().visit(ast.parse(text))
    # Every version writes the same: 3.12 has a field more, and 3.13 leaves out what is empty.
    options: Any = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(tree, **options).replace(", type_params=[]", "")


class _WithoutWords(ast.NodeTransformer):
    """Drops docstrings, and the strings that describe a constant or a field."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"extensions or {VARIABLE}: {path}: cannot be read: {reason}") from None


def _names(path: Path, registry: Registry) -> Mapping[str, object]:
    """Return what an extension adds to a registry.

    Raises:
        UserError: Its code is wrong; says where.
    """
    with failures_of_code(path):
        names = getattr(_module(path, _text(path)), registry, {})
    if not isinstance(names, Mapping):
        raise UserError(f"{path}: {registry}: expected a mapping of names, such as {{'name': ...}}")
    kind, methods = _KINDS[registry]
    for name, value in names.items():
        # A function may stand for a class of preparations: it is called to make one.
        is_maker = registry != "ARCHITECTURES" and not isinstance(value, type)
        needed = ("__call__",) if is_maker else methods
        for method in needed:
            if not callable(getattr(value, method, None)):
                raise UserError(f"{path}: {registry}: {name}: expected {kind}, not {value!r}")
    return names


@cache
def _module(path: Path, text: str) -> ModuleType:
    """Return an extension as a module that goes by its path, its part without torch run."""
    first: list[ast.stmt] = []
    rest = ast.parse(text, path).body
    while rest and not _imports_torch(rest[0]):
        first.append(rest.pop(0))
    module = ModuleType(str(path))
    module.__dict__.update(__file__=str(path), _rest=rest)
    sys.modules[str(path)] = module  # where pydantic looks for it
    _run(module, first)
    return module


def _imports_torch(statement: ast.stmt) -> bool:
    return ast.unparse(statement).startswith(("import torch", "from torch"))


def _run(module: ModuleType, statements: list[ast.stmt]) -> None:
    code = compile(ast.Module(statements, []), module.__name__, "exec")
    exec(code, module.__dict__)
