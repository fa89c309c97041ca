"""What code a script runs, as a digest: an edit runs again what it can change, and no more."""

import hashlib
import json
import re
import sys
from functools import cache
from pathlib import Path

from convs2s.config.extensions import code_of
from convs2s.errors import failures_of_file
from convs2s.files.atomic import atomic_path

PACKAGE = Path(__file__).resolve().parents[1]

WORDS_ONLY = {PACKAGE / "config/messages.py"}  # what words failures: no result comes from it

_IMPORT = re.compile(
    rf"^\s*(?:from|import) ({PACKAGE.name}[\w.]*)(?: import (\([^)]*\)|.*))?", re.MULTILINE
)


def fingerprints(scripts: Path, kept: Path) -> dict[str, str]:
    """Return the fingerprint of each script of a folder by the script's file name.

    Each job of a workflow reads its rules again, and with them these fingerprints, so the JSON file
    ``kept`` has them for as long as no byte of the scripts and of this package changes.

    Raises:
        UserError: it cannot be written, or is damaged.
    """
    state_digest = hashlib.sha256(sys.version.encode())
    for folder in (PACKAGE, scripts):
        for path in sorted(folder.rglob("*")):
            if "__pycache__" not in path.parts and path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                state_digest.update(f"{path.relative_to(folder)} {content}\n".encode())
    state = state_digest.hexdigest()
    if kept.is_file():
        with failures_of_file(str(kept), "not what this program keeps there: remove it"):
            known = json.loads(kept.read_text("utf-8"))
            digests: dict[str, str] | None = known.get(state)
        if digests is not None:
            return digests
    made = {}
    for path in sorted(scripts.glob("*.py")):
        made[path.name] = fingerprint(path)
    with atomic_path(kept) as partial:  # jobs may begin together
        partial.write_text(json.dumps({state: made}), "utf-8")
    return made


@cache
def fingerprint(script: Path) -> str:
    """Return a digest of the code that a script runs, comments and docstrings aside.

    It covers the file, every module of this package that it imports, directly or not, and the data
    files of these: a rule with it in its params runs again when its result can change.
    """
    digest = hashlib.sha256()
    pending = [script]
    seen = {script}
    while pending:
        path = pending.pop()
        code, imported = _read_code(path)
        digest.update(f"{path.name}\n{code}\n".encode())
        for module in sorted(imported - seen - WORDS_ONLY, reverse=True):
            seen.add(module)
            pending.append(module)
    data: set[Path] = set()
    for module in seen:
        if PACKAGE in module.parents:
            data |= {*module.parent.glob("data/*")}
    for file in sorted(data):
        if file.is_file() and file.suffix != ".py":
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _read_code(path: Path) -> tuple[str, frozenset[Path]]:
    """Return the syntax tree of what a file runs, and the modules of this package that it imports.

    Compiled code is none: from Python 3.13 on it holds the lines that classes begin on.
    """
    text = path.read_text("utf-8")
    files = set()
    for module, imported in _IMPORT.findall(text):
        place = PACKAGE.joinpath(*module.split(".")[1:])
        # What is imported from a module may be a module, too.
        inside = [place / name for name in re.findall(r"\w+", imported)]
        for path in (place, *inside):
            files |= {path.with_suffix(".py"), path / "__init__.py"}
    return code_of(text), frozenset(filter(Path.is_file, files))
