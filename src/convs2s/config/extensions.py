"""Extensions: a user's Python files that add networks, preparations and metrics.

docs/extending.md describes them. Only the files that the key ``extensions`` of the user's
configuration names are run. Each file is first run down to its first import of torch, so that
planning does not have to import torch. ``run_rest`` runs the remaining statements when a network is
built.
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
"""Environment variable with the paths of the files; the jobs of the workflow read it."""

Registry = Literal["ARCHITECTURES", "PREPARATIONS", "METRICS"]
"""Name of a dictionary that an extension may define: name that it adds -> value."""

# For each registry: the expected value, as messages call it, and the methods that a class must
# have. A metric cannot be a class, because a call of it must return a number and not an object.
# Whether a class of ARCHITECTURES is a subclass of NetworkSettings cannot be checked here, because
# architecture.py, which defines NetworkSettings, imports this module.
_EXPECTED: Mapping[Registry, tuple[str, Sequence[str]]] = {
    "ARCHITECTURES": (
        "a subclass of NetworkSettings with build",
        ("count_parameters", "build"),
    ),
    "PREPARATIONS": ("a class with prepare and restore", ("prepare", "restore")),
    "METRICS": ("a function", ()),
}


def export_extensions(
    files: Iterable[str],
    root: Path,
    *,
    add: bool = False,
) -> None:
    """Write the paths of extensions into the environment of this process and its children.

    Relative paths start at ``root``. With ``add``, the files are added to those that were exported
    before. This is needed if one process reads the configurations of two modules of a workflow,
    each with extensions.

    Raises:
        UserError: A path contains the character that separates paths in the variable.
    """
    paths = os.environ.get(VARIABLE, "").split(os.pathsep) if add else []
    for file in files:
        path = str((root / file).absolute())
        if os.pathsep in path:
            raise UserError(
                f"extensions: {path}: rename it, without '{os.pathsep}' in its path"
            )
        paths.append(path)
    # An empty variable was split into one empty path, which `filter` drops.
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(filter(None, paths)))


def extension_files() -> list[Path]:
    """Return the paths of the extensions that were exported.

    If no workflow has exported any, first export those that config.yaml and config.local.yaml in
    the current folder name.
    """
    if VARIABLE not in os.environ:
        files: tuple[str, ...] = ()
        for name, content in option_files(Path.cwd()).items():
            if isinstance(content, dict) and "extensions" in content:
                # The file that comes later overrides the earlier one.
                files = validated(
                    Options, {"extensions": content["extensions"]}, name
                ).extensions
        export_extensions(files, Path.cwd())
    return [Path(file) for file in os.environ[VARIABLE].split(os.pathsep) if file]


def added(registry: Registry, built_in: Collection[str]) -> dict[str, object]:
    """Return all entries that extensions add to a registry: name -> value.

    ``built_in`` are the names that the package itself has.

    Raises:
        UserError: An extension adds one of ``built_in``, or two extensions add the same name.
    """
    found: dict[str, object] = {}
    for path in extension_files():
        names = _names(path, registry)
        for name in sorted(names):
            if name in built_in or name in found:
                raise UserError(
                    f"{path}: {registry}: the name '{name}' is taken: choose another"
                )
        found |= names
    return found


def check_added(
    where: str,
    registry: Registry,
    name: str | None,
    built_in: Collection[str] = (),
) -> Any:
    """Return the value that an extension adds under a name.

    Return None if ``name`` is None, or if it is one of the names ``built_in`` of the package.

    Raises:
        UserError: Neither the package nor an extension has the name. The message begins with
            ``where``.
    """
    if name is None or name in built_in:
        return None
    known = added(registry, built_in)
    if name not in known:
        # architecture, preparation or metric
        noun = registry.lower().removesuffix("s")
        message = unknown(noun, name, [*built_in, *known])
        raise UserError(
            f"{where}: {message} (docs/extending.md: extensions of config.yaml)"
        )
    return known[name]


def run_rest(section: type) -> None:
    """Run the rest of an extension's file, from its first import of torch on.

    ``section`` is a class that the file defines. A second call for the same file does nothing.
    """
    module = sys.modules[section.__module__]
    _run(module, module.__dict__.pop("_rest", []))


def digest_of_extension(registry: Registry, name: str) -> str | None:
    """Return a digest of the code of the extension that adds a name; None if none adds it."""
    for path in extension_files():
        if name in _names(path, registry):
            code = code_of(_text(path))
            return hashlib.sha256(code.encode()).hexdigest()[:16]
    return None


def digests_of_extensions(
    registry: Registry, names: Iterable[str]
) -> dict[str, str | None]:
    """Return the `digest_of_extension` of each name, in the order of the names."""
    return {name: digest_of_extension(registry, name) for name in sorted(names)}


@contextmanager
def failures_of_code(where: object) -> Iterator[None]:
    """Turn any exception of an extension's code into a UserError.

    The message begins with the line of the extension at which the exception was raised, or with
    ``where`` if none of the traceback's files is an extension.
    """
    try:
        yield
    except UserError:
        raise
    # The user's code may raise any exception.
    except Exception as error:
        place = where
        extensions = [str(file) for file in extension_files()]
        # The last line of an extension in the traceback is the innermost one.
        for step in traceback.extract_tb(error.__traceback__):
            if step.filename in extensions:
                place = f"{step.filename}:{step.lineno}"
        if isinstance(error, SyntaxError):
            place = f"{error.filename}:{error.lineno}"
        raise UserError(f"{place}: {type(error).__name__}: {error}") from error


def code_of(text: str) -> str:
    """Return the syntax tree of a Python file, as text, without comments and docstrings.

    The text is the same in every version of Python, and so is a digest of it.
    """
    tree = _WithoutWords().visit(ast.parse(text))
    # Python 3.12 added the field type_params, and 3.13 leaves out empty lists by default.
    options: Any = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(tree, **options).replace(", type_params=[]", "")


class _WithoutWords(ast.NodeTransformer):
    """Drops docstrings, and the strings below constants and fields, which describe them."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        # A UnicodeDecodeError has no strerror.
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"extensions or {VARIABLE}: {path}: cannot be read: {reason}"
        ) from None


def _names(path: Path, registry: Registry) -> Mapping[str, object]:
    """Return the entries that one extension adds to a registry: name -> value.

    Raises:
        UserError: The file cannot be read, its code fails, or the registry is malformed. The
            message names the file and, if the code fails, the line.
    """
    with failures_of_code(path):
        names = getattr(_module(path, _text(path)), registry, {})
    if not isinstance(names, Mapping):
        raise UserError(
            f"{path}: {registry}: expected a mapping of names, such as {{'name': ...}}"
        )
    expected, methods = _EXPECTED[registry]
    for name, value in names.items():
        if isinstance(value, type):
            has_methods = all(
                callable(getattr(value, method, None)) for method in methods
            )
            is_valid = registry != "METRICS" and has_methods
        else:
            # PREPARATIONS may have a function that makes a preparation in place of its class.
            is_valid = callable(value) and registry != "ARCHITECTURES"
        if not is_valid:
            raise UserError(
                f"{path}: {registry}: {name}: expected {expected}, not {value!r}"
            )
    return names


@cache
def _module(path: Path, text: str) -> ModuleType:
    """Run an extension down to its first import of torch, and return it as a module.

    The path is the module's name. The remaining statements are kept in ``_rest`` for `run_rest`.
    """
    first: list[ast.stmt] = []
    rest = ast.parse(text, path).body
    while rest and not _imports_torch(rest[0]):
        first.append(rest.pop(0))
    module = ModuleType(str(path))
    module.__dict__.update(__file__=str(path), _rest=rest)
    # Pydantic looks up a class's module by its name here.
    sys.modules[str(path)] = module
    _run(module, first)
    return module


def _imports_torch(statement: ast.stmt) -> bool:
    return ast.unparse(statement).startswith(("import torch", "from torch"))


def _run(module: ModuleType, statements: list[ast.stmt]) -> None:
    code = compile(ast.Module(statements, []), module.__name__, "exec")
    exec(code, module.__dict__)
