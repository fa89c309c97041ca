"""One name for one thing (and the field's own), over the whole package."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.package import modules

BRITISH = re.compile(
    r"(?i)(normal|token|optim|initial|binar|symmetr|summar|recogn|organ|capital|quant|serial)is"
    r"(?=(?:e|ed|es|er|ers|ing|ation|ations)(?![a-z]))"
)
START_AS = "initialise"
"""A value of ``training.start.as``, by the name that its users asked for."""


def public_names(path: Path) -> list[str]:
    """Return the classes and constants that a module makes."""
    names = []
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
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
    folders = (
        "src",
        "workflow/scripts",
        "rules",
        "benchmarks",
        "examples",
        "tests",
        "tools",
        "config",
        "docs",
    )
    for folder in folders:
        for path in (root / folder).rglob("*"):
            if (
                path.suffix in (".py", ".smk", ".yaml", ".md")
                and path.name != Path(__file__).name
            ):
                text = path.read_text("utf-8").replace(START_AS, "")
                found = BRITISH.search(text)
                assert found is None, f"{path.relative_to(root)}: {found and found[0]}"


WALKS = {
    "beam": (
        [
            "config/decodings.yaml",
            "src/convs2s/config/decoding.py",
            "src/convs2s/decoding/search.py",
        ],
        [
            "rules/decoding.smk",
            "workflow/scripts/decode_test_set.py",
            "src/convs2s/decoding/test_sets.py",
            "src/convs2s/decoding/translate.py",
        ],
    ),
    "dropout": (
        [
            "config/models.yaml",
            "src/convs2s/config/architecture.py",
            "src/convs2s/models/convs2s.py",
            "src/convs2s/models/layers.py",
            "src/convs2s/models/kernels/dropout.py",
        ],
        [
            "rules/training.smk",
            "src/convs2s/models/build.py",
            "src/convs2s/training/run.py",
        ],
    ),
}
"""Setting -> the files that name it on its way (docs/structure.md), and those that pass it on."""

MOST_FILES = {"beam": 5, "dropout": 14}
"""Modules of the package that name a setting, in code or in words."""


@pytest.mark.parametrize("setting", WALKS)
def test_a_setting_is_named_in_few_files(root: Path, setting: str) -> None:
    name = re.compile(rf"\b{setting}\b")
    named, passed_on = ([root / file for file in files] for files in WALKS[setting])
    assert all(name.search(path.read_text("utf-8")) for path in named)
    assert not any(name.search(path.read_text("utf-8")) for path in passed_on)
    package = modules(root).values()
    assert (
        sum(bool(name.search(path.read_text("utf-8"))) for path in package)
        <= MOST_FILES[setting]
    )
