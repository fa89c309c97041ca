"""What code a script runs, as a digest: an edit runs again what it can change, and no more."""

import ast
import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

WORDS_ONLY = {PACKAGE / "config" / name for name in ("messages.py", "faults.py", "rules.py")}
"""Modules that word failures and help: no result comes from them."""


def fingerprints(scripts: Path, kept: Path) -> dict[str, str]:
    """Return the fingerprint of each script of a folder.

    Each job of a workflow reads its rules again, and with them these fingerprints, so they are kept
    in a file for as long as no byte of the scripts and of this package changes.

    Args:
        scripts: the folder.
        kept: the JSON file that keeps them.

    Returns:
        A script's file name -> its fingerprint.
    """
    state = _state(scripts)
    if kept.is_file():
        found: dict[str, dict[str, str]] = json.loads(kept.read_text("utf-8"))
        if state in found:
            return found[state]
    made = {path.name: fingerprint(path) for path in sorted(scripts.glob("*.py"))}
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_name(f".partial.{os.getpid()}.{kept.name}")  # jobs may begin together
    partial.write_text(json.dumps({state: made}), "utf-8")
    partial.replace(kept)
    return made


@cache
def fingerprint(*entries: Path) -> str:
    """Return a digest of the code that scripts or modules run, comments and docstrings aside.

    It covers the files themselves and every module of this package that they import, directly or
    not, with the data files of their packages, so that a rule which carries it in its params is run
    again when a change of the code can change its result, and never for an edited comment.
    """
    digest = hashlib.sha256()
    pending, seen = sorted(entries, reverse=True), set(entries)
    while pending:
        path = pending.pop()
        code, imported = _read_code(path)
        digest.update(f"{path.name}\n{code}\n".encode())
        for module in sorted(imported - seen - WORDS_ONLY, reverse=True):
            seen.add(module)
            pending.append(module)
    for file in _data_files(seen):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _state(scripts: Path) -> str:
    """Return a digest of what fingerprints rest on: the files, and how Python words a tree."""
    digest = hashlib.sha256(sys.version.encode())
    for folder in (PACKAGE, scripts):
        for path in sorted(folder.rglob("*")):
            if "__pycache__" not in path.parts and path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                digest.update(f"{path.relative_to(folder)} {content}\n".encode())
    return digest.hexdigest()


def _data_files(modules: set[Path]) -> list[Path]:
    """Return the data files that lie in a folder ``data`` beside some modules, in a fixed order."""
    folders = {module.parent / "data" for module in modules if PACKAGE in module.parents}
    files = [file for folder in folders for file in folder.glob("*") if file.is_file()]
    return sorted(file for file in files if file.suffix != ".py")


@cache
def _read_code(path: Path) -> tuple[str, frozenset[Path]]:
    """Return a file's syntax tree as text without docstrings, and the modules that it imports."""
    tree = ast.parse(path.read_text("utf-8"))
    imported: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {_module(alias.name) for alias in node.names} - {None}  # type: ignore[arg-type]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            imported |= {_module(name) for name in names} - {None}  # type: ignore[arg-type]
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_docstring(one)]  # type: ignore[attr-defined]
    return ast.dump(tree), frozenset(imported)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _module(name: str) -> Path | None:
    """Return the file of a module of this package, or None for any other name."""
    parts = name.split(".")
    if parts[0] != PACKAGE.name:
        return None
    path = PACKAGE.joinpath(*parts[1:])
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)
