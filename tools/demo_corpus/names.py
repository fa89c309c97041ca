"""Names: a few common ones, and thousands made from syllables, rare enough to be unknown words.

A rare name is the same on both sides, so that a translator can only copy it.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from demo_corpus.data_files import read_table, require
from demo_corpus.fillers import Fixed

GENDERS = ("m", "f")
PARTS = ("openings", "syllables", "family_endings", "town_endings")


@dataclass(frozen=True)
class NameLists:
    """What people and towns are called."""

    first_names: Sequence[Fixed]
    titles: Sequence[Fixed]
    """What a rare family name is put behind, with its gender."""
    family_names: Sequence[str]
    town_names: Sequence[str]

    def friend(self, rng: random.Random) -> Fixed:
        """Draw a common first name."""
        return rng.choice(self.first_names)

    def named(self, rng: random.Random) -> Fixed:
        """Draw a person with a rare name: ``Mrs. Katilen``."""
        title = rng.choice(self.titles)
        name = rng.choice(self.family_names)
        return Fixed(
            f"{title.in_english} {name}", f"{title.in_french} {name}", title.gender
        )

    def town(self, rng: random.Random) -> Fixed:
        """Draw the rare name of a town."""
        name = rng.choice(self.town_names)
        return Fixed(name, name)


def read_names(folder: Path) -> NameLists:
    """Read the tables of names of a folder.

    Raises:
        UserError: a table is malformed; the message names the file and the line.
    """
    rare_names = folder / "rare_names.tsv"
    rows = read_table(rare_names, "part texts")
    parts = {row.choice("part", PARTS): row["texts"].split() for row in rows}
    require(PARTS, parts, rare_names, "part")
    stems = [a + b for a in parts["openings"] for b in parts["syllables"]]
    return NameLists(
        first_names=[
            Fixed(row["name"], row["name"], row.choice("gender", GENDERS))
            for row in read_table(folder / "first_names.tsv", "name gender")
        ],
        titles=[
            Fixed(row["english"], row["french"], row.choice("gender", GENDERS))
            for row in read_table(folder / "titles.tsv", "english french gender")
        ],
        family_names=[
            stem + ending for stem in stems for ending in parts["family_endings"]
        ],
        town_names=[
            stem + ending for stem in stems for ending in parts["town_endings"]
        ],
    )
