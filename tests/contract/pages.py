"""The pages that a user reads, and what they ask a user to type or to write."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GENERATED = ("configuration.md", "results.md", "short_run.md")

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^    \S.*\n(?:^ {4,}\S.*\n)*)", re.MULTILINE)
_INLINE = re.compile(r"`(snakemake [^`]*)`")
_COMMAND = re.compile(r"^ *(snakemake .*?)(?: +#.*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code on a page.

    Attributes:
        page: its file's name.
        kind: what the page says it is: yaml, sh, text; "" where it is indented.
        text: without the indentation.
    """

    page: str
    kind: str
    text: str


def blocks(root: Path) -> Iterator[Block]:
    """Yield the blocks of all pages but generated ones."""
    for page in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
        if page.name not in GENERATED:
            text = page.read_text("utf-8")
            for kind, fenced in _FENCED.findall(text):
                yield Block(page.name, kind, fenced)
            for indented in _INDENTED.findall(_FENCED.sub("", text)):
                code = re.sub("^    ", "", indented, flags=re.MULTILINE)
                yield Block(page.name, "", code)


def fenced(page: Path, kind: str) -> list[str]:
    """Return the fenced blocks of one kind on a page."""
    found = _FENCED.findall(page.read_text("utf-8"))
    return [text for of_kind, text in found if of_kind == kind]


def snakemake_commands(root: Path) -> set[str]:
    """Return each command line of Snakemake in a block or a sentence, without comments."""
    found: set[str] = set()
    for block in blocks(root):
        found.update(_COMMAND.findall(block.text.replace("\\\n", "")))
    for pattern in ("README.md", "docs/*.md", "notebooks/*.ipynb"):
        for page in root.glob(pattern):
            found.update(_INLINE.findall(page.read_text("utf-8")))
    return found
