"""Digests of the code that a script runs.

They are params of the rules, so that an edit reruns only the jobs whose results it can change.
"""

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

WORDS_ONLY = {PACKAGE / "config/messages.py"}
"""Modules that only word messages. No result depends on them, so fingerprints leave them out."""

# Groups: a module of this package, and the names that are imported from it.
_IMPORT = re.compile(
    rf"^\s*(?:from|import) ({PACKAGE.name}[\w.]*)(?: import (\([^)]*\)|.*))?",
    re.MULTILINE,
)


def fingerprints(scripts: Path, kept: Path) -> dict[str, str]:
    """Return the fingerprint of each script in a folder, by the script's file name.

    Every job of the workflow reads the rules again, and with them these fingerprints. The file
    ``kept`` saves computing them each time. It is a JSON object ``{STATE: {SCRIPT: FINGERPRINT}}``,
    where ``STATE`` is a digest of the version of Python and of all bytes of the scripts and of this
    package. It is written anew when that digest changes.

    Raises:
        UserError: ``kept`` cannot be written, or is damaged.
    """
    digest_of_files = hashlib.sha256(sys.version.encode())
    for folder in (PACKAGE, scripts):
        for path in sorted(folder.rglob("*")):
            if "__pycache__" not in path.parts and path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                line = f"{path.relative_to(folder)} {content}\n"
                digest_of_files.update(line.encode())
    state = digest_of_files.hexdigest()
    if kept.is_file():
        problem = "not what this program keeps there: remove it"
        with failures_of_file(str(kept), problem):
            saved = json.loads(kept.read_text("utf-8"))
            known: dict[str, str] | None = saved.get(state)
        if known is not None:
            return known
    computed = {path.name: fingerprint(path) for path in sorted(scripts.glob("*.py"))}
    # Other jobs may read or write this file at the same time.
    with atomic_path(kept) as partial:
        partial.write_text(json.dumps({state: computed}), "utf-8")
    return computed


def fingerprint(script: Path) -> str:
    """Return a digest of the code that a script runs, without comments and docstrings.

    The digest covers the script, every module of this package that it imports, directly or
    indirectly, and the data files beside these modules. A rule that has it among its params runs
    again when its result can change.
    """
    digest = hashlib.sha256()
    pending = [script]
    seen = {script}
    while pending:
        path = pending.pop()
        code, imported = _read_code(path)
        digest.update(f"{path.name}\n{code}\n".encode())
        # In reverse order, because the last one is popped first.
        for module in sorted(imported - seen - WORDS_ONLY, reverse=True):
            seen.add(module)
            pending.append(module)
    data: set[Path] = set()
    for module in seen:
        if PACKAGE in module.parents:
            data.update(module.parent.glob("data/*"))
    for file in sorted(data):
        if file.is_file() and file.suffix != ".py":
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _read_code(path: Path) -> tuple[str, frozenset[Path]]:
    """Return the code of a file as a syntax tree, and the files of this package that it imports.

    Compiled code cannot take the place of the tree: from Python 3.13 on, it contains the numbers of
    the lines on which classes begin, and a comment changes these.
    """
    text = path.read_text("utf-8")
    files = set()
    for module, imported in _IMPORT.findall(text):
        imported_from = PACKAGE.joinpath(*module.split(".")[1:])
        # A name that is imported from a package may be a module of it.
        submodules = [imported_from / name for name in re.findall(r"\w+", imported)]
        for candidate in (imported_from, *submodules):
            files |= {candidate.with_suffix(".py"), candidate / "__init__.py"}
    return code_of(text), frozenset(filter(Path.is_file, files))
