"""Faults that a machine puts into the rooms where results come from: a sample of them all.

``make mutants``, or ``python -m tests.mutants.machine 500 scoring paper/claims.py`` for so many, of
these rooms or files of the package alone. The sample is the same for the same code, and mostly so
where other lines change. Each fault meets the tests that run its line, the shortest first, then the
files that import any module of its room: a process of its own may run the line for them, or a
fixture that several share. Whatever fails finds it, also tests that never end. Messages,
annotations and the looks of plots are left alone, and what harmless.yaml shows to change nothing
counts as found.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from coverage import CoverageData

from tests.mutants.__main__ import ROOT, check_passed, run_tests, try_faults
from tests.mutants.faults import Edit, Fault

ROOMS = (
    "training",
    "decoding",
    "scoring",
    "paper",
    "costs",
    "publish",
    "pipeline",
    "models",
    "data",
    "text",
    "config",
)
SEED = 1

OTHER_TESTS = {"workflow", "support", "mutants"}
"""Folders of tests/ that no fault meets: their tests take minutes, or are none."""

FEW = 10
"""Tests of the first process: the files of so many are soon imported."""

PAIRS = "Lt LtE, Gt GtE, Eq NotEq, In NotIn, Is IsNot, And Or, Add Sub, Mult Div"
OTHER: dict[type[ast.AST], Any] = {ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult}
for pair in PAIRS.split(", "):
    first, second = (getattr(ast, name) for name in pair.split())
    OTHER |= {first: second, second: first}
"""Operators -> what takes their place."""

COVERAGE = """[run]
core = ctrace
data_file = {data}
dynamic_context = test_function
source = {source}
"""
"""What coverage is asked: which tests run each line."""

GUARDS = ("strict", "frozen")
"""Arguments of ``zip`` and of classes that tell a fault of the program where there is none."""

LOOKS = re.compile(r"alt\.|.*\.(mark_\w+|encode|properties)$", re.DOTALL)
"""Calls that draw a plot."""

HARMLESS = Path(__file__).with_name("harmless.yaml")
"""File of the package -> a line, its changes that alter no result, and why."""

MESSAGES = (ast.Raise, ast.JoinedStr)
ANNOTATIONS = ("annotation", "returns")


def nodes_of_results(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it, but for what gives no results."""
    yield node
    if isinstance(node, ast.Call) and LOOKS.match(ast.unparse(node.func)):
        yield from nodes_of_results(node.func)
        return
    for field, value in ast.iter_fields(node):
        if field not in ANNOTATIONS:
            for child in value if isinstance(value, list) else [value]:
                is_node = isinstance(child, ast.AST) and not isinstance(child, MESSAGES)
                if is_node and getattr(child, "arg", None) not in GUARDS:
                    yield from nodes_of_results(child)


def mutants_of(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each expression of a node that is changed, and what takes its place."""
    match node:
        case ast.Compare(ops=[operator]):
            other = [OTHER[type(operator)]()]
            yield node, ast.Compare(node.left, other, node.comparators)
        case ast.BinOp(op=operator) if type(operator) in OTHER:
            yield node, ast.BinOp(node.left, OTHER[type(operator)](), node.right)
        case ast.BoolOp(op=operator):
            yield node, ast.BoolOp(OTHER[type(operator)](), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node, node.operand
        case ast.Constant(value=bool(truth)):
            yield node, ast.Constant(not truth)
        case ast.Constant(value=int(number)):
            yield from ((node, ast.Constant(number + step)) for step in (1, -1))
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield value, ast.Constant(None)


def edited(source: str, old: ast.expr, new: ast.expr) -> str:
    """Return a file's text with one expression in place of another; columns count bytes."""
    whole = source.encode()
    lines = whole.splitlines(keepends=True)
    start = sum(map(len, lines[: old.lineno - 1])) + old.col_offset
    end = start + len((ast.get_source_segment(source, old) or "").encode())
    return (whole[:start] + f"({ast.unparse(new)})".encode() + whole[end:]).decode()


@cache
def files_naming(room: str) -> tuple[str, ...]:
    """Return the test files that import any module of a room."""
    name = re.compile(rf"\bconvs2s\.{room}\b")
    found = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        path = file.relative_to(ROOT)
        if path.parts[1] not in OTHER_TESTS and name.search(file.read_text("utf-8")):
            found.append(str(path))
    return tuple(found)


def all_mutants(places: Sequence[str]) -> Iterator[Fault]:
    """Yield every fault of some rooms or files, in the order of their files and lines."""
    for place in places:
        room = place.partition("/")[0]
        whole = ROOT / "src/convs2s" / place
        files = sorted(whole.rglob("*.py")) if whole.is_dir() else [whole]
        for path in files:
            file = str(path.relative_to(ROOT))
            source = path.read_text("utf-8")
            for node in nodes_of_results(ast.parse(source)):
                for old, new in mutants_of(node):
                    name = (
                        f"{file}:{old.lineno}: {ast.unparse(old)} -> {ast.unparse(new)}"
                    )
                    edit = Edit(file, source, edited(source, old, new))
                    yield Fault(room, name, (edit,), files_naming(room))


def aimed(root: Path, faults: Sequence[Fault]) -> list[Fault]:
    """Return the faults with the tests that run their lines in an unchanged copy first.

    The fewer lines a test runs, the earlier it comes.
    """
    settings, data = root / "coverage.ini", root / "coverage.data"
    settings.write_text(
        COVERAGE.format(data=data, source=root / "src/convs2s"), "utf-8"
    )
    every = sorted({test for fault in faults for test in fault.tests})
    status, output = run_tests(
        root, every, "-m", "coverage", "run", f"--rcfile={settings}"
    )
    check_passed(status, output)
    measured = CoverageData(str(data))
    measured.read()
    running: dict[tuple[str, int], list[str]] = {}
    lines: Counter[str] = Counter()
    for file in measured.measured_files():
        for line, contexts in measured.contexts_by_lineno(file).items():
            # Coverage also takes functions of the package for tests, such as Plan.test_text.
            tests = [node_id(one) for one in contexts if one.startswith("tests.")]
            running[file, line] = tests
            lines.update(tests)
    found = []
    for fault in faults:
        file, number = fault.name.split(":")[:2]
        tests = running.get((str(root / file), int(number)), [])
        first = tuple(sorted(tests, key=lines.__getitem__))
        then = (first[FEW:], fault.tests)
        found.append(replace(fault, tests=first[:FEW], then=then))
    return found


def node_id(context: str) -> str:
    """Return the test that coverage calls by its names in Python."""
    module, _, name = context.rpartition(".")
    return f"{module.replace('.', '/')}.py::{name}"


Change = tuple[str, str, str]
"""A file, one of its lines, and what becomes of a part of it: OLD -> NEW."""


def change_of(fault: Fault) -> Change:
    """Return what a fault changes, without the number of its line."""
    file, number, change = fault.name.split(":", 2)
    line = fault.edits[0].old.splitlines()[int(number) - 1]
    return file, line.strip(), change.strip()


def harmless_changes() -> set[Change]:
    """Return the changes that are shown to alter no result."""
    stated = yaml.safe_load(HARMLESS.read_text("utf-8"))
    return {
        (file, line["line"], change)
        for file, lines in stated.items()
        for line in lines
        for change in line["changes"]
    }


def drawn(faults: Sequence[Fault], size: int) -> list[Fault]:
    """Return a sample: each fault's place in the draw is that of the text that it changes."""

    def place(fault: Fault) -> tuple[bytes, str]:
        text = repr((SEED, change_of(fault)))
        return sha256(text.encode()).digest(), fault.name

    return sorted(faults, key=place)[:size]


def main(size: int, places: Sequence[str]) -> None:
    """Try a sample of the faults."""
    mutants = list(all_mutants(places or ROOMS))
    sample = drawn(mutants, size)
    harmless = harmless_changes()
    tried = [fault for fault in sample if change_of(fault) not in harmless]
    print(
        f"{len(sample)} of {len(mutants)} machine-made faults, drawn by the seed {SEED}; "
        f"{len(sample) - len(tried)} of them are shown to change nothing"
    )
    try_faults(tried, aimed)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
