"""The rows of the original scripts' BLEU scores, and the text that each scores."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from convs2s.files.text import read_lines
from tests.support.golden import golden_lines


@dataclass(frozen=True)
class BleuRow:
    """A line of ``multi-bleu.tsv`` or of a table of mteval-v13a.pl's.

    Attributes:
        folder: of the table and the text.
        name: the hypotheses' file.
        references: their number, or the name of the one of two that counts.
        option: ``cased``, ``-lc``, or mteval-v13a.pl's options.
        printed: the script's line or score; empty where it died.
    """

    folder: Path
    name: str
    references: str
    option: str
    printed: str

    @property
    def label(self) -> str:
        """What a test is called."""
        return f"{self.name} {self.references} {self.option}"

    @property
    def lowercase(self) -> bool:
        return self.option in ("-lc", "(case-insensitive)")

    @property
    def bleu(self) -> str:
        """The score that multi-bleu.perl prints.

        Where no word is translated it stops with a division by zero and prints nothing.
        """
        return self.printed.split(" ")[2].rstrip(",") if self.printed else "0.00"

    @property
    def ratio(self) -> str:
        """The lengths' ratio that multi-bleu.perl prints."""
        found = re.search(r"ratio=([0-9.]+)", self.printed)
        return found[1] if found else "0.000"

    def texts(self) -> list[list[str]]:
        """Return the lines of the hypotheses, then of each reference."""
        stem = self.name.split(".hyp.")[0]
        ends = {"1": ["ref"], "2": ["ref0", "ref1"], "4": [f"ref{n}" for n in range(4)]}
        names = [
            f"{stem}.{end}" for end in ends.get(self.references, [self.references])
        ]
        return [golden_lines(self.folder, name) for name in (self.name, *names)]


def bleu_rows(table: Path) -> Iterator[BleuRow]:
    """Yield the rows of a table; where it states no number of references there is one.

    Those of international tokenization are left out: it is not a metric of the paper.
    """
    for line in read_lines(table):
        name, *stated, option, printed = line.split("\t")
        if "--international-tokenization" not in option:
            yield BleuRow(
                table.parent, name, stated[0] if stated else "1", option, printed
            )
