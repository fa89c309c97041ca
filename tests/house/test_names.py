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


def test_no_class_or_constant_means_two_things(root: Path) -> None:
    places = defaultdict(list)
    for module, path in modules(root).items():
        for node in ast.parse(path.read_text("utf-8")).body:
            match node:
                case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    places[name].append(module)
                case ast.Assign(targets=targets):
                    for one in targets:
                        if isinstance(one, ast.Name):
                            places[one.id].append(module)
    # A single letter is a type variable.
    several = {name for name, found in places.items() if len(found) > 1}
    assert [one for one in several if not one.startswith("_") and len(one) > 1] == []


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
