"""What ROUGE-1.5.5.pl prints for each item, and the text that it scores."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.files.text import read_lines
from convs2s.scoring.rouge import RougeItem, RougeOptions, rouge_items
from convs2s.scoring.rouge_stem import NO_EXCEPTIONS, RougeExceptions
from tests.support.golden import golden_lines

_CASE = re.compile(r"(?P<set>duc|giga)(?P<system>[AB])(?:\.ref(?P<references>\d))?\..+")
_LINE = re.compile(r"X ROUGE-([12L]) Eval (\d+)\.X R:(\S+) P:(\S+) F:(\S+)")


@dataclass(frozen=True)
class RougeCase:
    """A file of the script's output.

    Attributes:
        name: its name without the ending, such as ducA.ref4.b75.m.best.
        texts: the hypotheses, then each list of references.
        printed: of each item recall, precision and F of ROUGE-1, 2 and L.
    """

    name: str
    texts: Sequence[Sequence[str]]
    printed: Sequence[Sequence[str]]

    @property
    def is_stemmed(self) -> bool:
        return "m" in self.name.split(".")

    def options(self, exceptions: RougeExceptions) -> RougeOptions:
        parts = self.name.split(".")
        return RougeOptions(
            byte_limit=75 if "b75" in parts else None,
            stem=self.is_stemmed,
            exceptions=exceptions,
            best="best" in parts,
        )

    def ours(self, exceptions: RougeExceptions = NO_EXCEPTIONS) -> list[list[str]]:
        """Return the same as ``printed``, of our own."""
        items = rouge_items(*self.texts, options=self.options(exceptions))
        return [list(_printed(item)) for item in items]


def _printed(item: RougeItem) -> Iterator[str]:
    for one in item.values():
        yield from (f"{value:.5f}" for value in (one.recall, one.precision, one.f1))


def rouge_case(path: Path) -> RougeCase:
    """Read a table of golden/data, or an output of the script's that holds a case."""
    name = path.name.removesuffix(".gz").removesuffix(".tsv").removesuffix(".out")
    found = _CASE.fullmatch(name)
    assert found, name
    texts = [f"{found['set']}.hyp{found['system']}.txt", *_references(found)]
    rows = _table(path) if ".tsv" in path.name else _output(path)
    return RougeCase(name, [golden_lines(path.parent, text) for text in texts], rows)


def _references(case: re.Match[str]) -> list[str]:
    if case["set"] == "giga":
        return ["giga.ref.txt"]
    return [
        f"duc.ref{number}.txt" for number in range(1, int(case["references"] or 4) + 1)
    ]


def _table(path: Path) -> list[list[str]]:
    _, *rows = ([*line.split("\t")] for line in read_lines(path))
    assert [int(number) for number, *_ in rows] == list(range(1, len(rows) + 1))
    return [values for _, *values in rows]


def _output(path: Path) -> list[list[str]]:
    found: dict[int, list[str]] = {}
    for line in read_lines(path):
        if match := _LINE.fullmatch(line):
            kind, number, *values = match.groups()
            assert len(found.setdefault(int(number), [])) == 3 * "12L".index(kind)
            found[int(number)] += values
    return [found[number] for number in range(1, len(found) + 1)]
