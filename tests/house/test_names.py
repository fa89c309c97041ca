"""One name for one thing (and the field's own), over the whole package."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.house.package import modules

BRITISH = re.compile(
    r"(?i)(normal|token|optim|initial|binar|symmetr|summar|recogn|organ|capital|quant|serial)is"
    r"(?=(?:e|ed|es|er|ers|ing|ation|ations)(?![a-z]))"
)
START_AS = "initialise"
"""A value of ``training.start.as``, by the name that its users asked for."""

TEXT = "src workflow rules benchmarks examples tests tools config docs"
SUFFIXES = (".py", ".smk", ".yaml", ".md")


def public_names(path: Path) -> list[str]:
    """Return the classes and constants that a module makes."""
    names = []
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
            case ast.Assign(targets=targets):
                names += [one.id for one in targets if isinstance(one, ast.Name)]
    # A single letter is a type variable.
    return [name for name in names if not name.startswith("_") and len(name) > 1]


def test_no_name_means_two_things(root: Path) -> None:
    places = defaultdict(list)
    for module, path in modules(root).items():
        for name in public_names(path):
            places[name].append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_libraries_spelling(root: Path) -> None:
    looked_at = 0
    for folder in TEXT.split():
        for path in (root / folder).rglob("*"):
            if path.suffix not in SUFFIXES or path == Path(__file__):
                continue
            text = path.read_text("utf-8").replace(START_AS, "")
            found = BRITISH.search(text)
            assert found is None, f"{path.relative_to(root)}: {found and found[0]}"
            looked_at += 1
    assert looked_at > 500
