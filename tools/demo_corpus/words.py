"""The dictionary of the demo: words with all their forms, in sets, read from tables.

Regular forms are left out of the tables.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from demo_corpus import agreement
from demo_corpus.data_files import DataRow, read_table, require

Item = TypeVar("Item")
Expression = tuple[str, str]

NOUN_GENDERS = ("m", "f", "mp", "fp")
POSITIONS = ("before", "behind", "invariable")
FREQUENCIES = ("common", "rare")

RARE_SHARE = 0.1
"""How often a rare word is drawn where a set has common and rare ones."""

SKEW = 1.5
"""How much more often the first words of a set are drawn than the last; at 1 all are alike."""


@dataclass(frozen=True)
class Noun:
    """A noun: its English forms, its French forms, its French gender (``m`` or ``f``)."""

    english: str
    english_plural: str
    french: str
    french_plural: str
    gender: str
    always_plural: bool = False


@dataclass(frozen=True)
class Adjective:
    """An adjective: its French forms, and whether it stands before the French noun."""

    english: str
    forms: Sequence[str]
    """Masculine, feminine, masculine plural, feminine plural."""
    before_vowel: str
    precedes: bool

    def agree(self, gender: str, plural: bool, following: str = "") -> str:
        """Return the French form for a gender and number; ``following`` is the word after it."""
        if gender == "m" and not plural and agreement.opens_with_vowel(following):
            return self.before_vowel
        return agreement.agreeing(self.forms, gender, plural)


@dataclass(frozen=True)
class Verb:
    """A verb: what its English and French forms are made from."""

    english: str
    english_past: str
    english_participle: str
    french: str
    singular: str
    plural: str
    participle: str
    future_stem: str
    with_etre: bool = False


@dataclass(frozen=True)
class WordSet(Generic[Item]):
    """Common words and rare ones."""

    common: Sequence[Item] = ()
    rare: Sequence[Item] = ()

    def __add__(self, other: "WordSet[Item]") -> "WordSet[Item]":
        """Return the words of both sets."""
        return WordSet([*self.common, *other.common], [*self.rare, *other.rare])

    def draw(self, rng: random.Random) -> Item:
        """Draw a common word, the first ones most often, or now and then a rare one."""
        if self.rare and rng.random() < RARE_SHARE:
            return rng.choice(self.rare)
        return self.common[int(len(self.common) * rng.random() ** SKEW)]


@dataclass(frozen=True)
class WordLists:
    """The sets of words of each part of speech, by their names."""

    nouns: Mapping[str, WordSet[Noun]]
    adjectives: Mapping[str, WordSet[Adjective]]
    verbs: Mapping[str, WordSet[Verb]]
    expressions: Mapping[str, WordSet[Expression]]


def read_word_lists(folder: Path) -> WordLists:
    """Read all tables of a folder.

    Raises:
        UserError: a table is malformed; the message names the file and the line.
    """
    forms_of_verbs = (
        "english_past english_participle singular plural participle future_stem"
    )
    file = folder / "expressions.tsv"
    expressions = read_word_sets(file, lambda row: (row["english"], row["french"]))
    require(("counts", "months"), expressions, file, "set")
    return WordLists(
        nouns=read_word_sets(
            folder / "nouns.tsv", noun, "gender", "english_plural french_plural"
        ),
        adjectives=read_adjective_sets(
            folder / "adjective_sets.tsv", read_adjectives(folder / "adjectives.tsv")
        ),
        verbs=read_word_sets(folder / "verbs.tsv", verb, "auxiliary", forms_of_verbs),
        expressions=expressions,
    )


def noun(row: DataRow) -> Noun:
    """Build a noun from its row."""
    gender = row.choice("gender", NOUN_GENDERS)
    return Noun(
        english=row["english"],
        english_plural=row["english_plural"] or agreement.with_s(row["english"]),
        french=row["french"],
        french_plural=row["french_plural"] or agreement.french_plural(row["french"]),
        gender=gender[0],
        always_plural=gender.endswith("p"),
    )


def read_adjectives(file: Path) -> dict[str, Adjective]:
    """Read the adjectives, by their English form."""
    adjectives: dict[str, Adjective] = {}
    for row in read_table(file, "english position masculine", "feminine before_vowel"):
        if row["english"] in adjectives:
            raise row.fault(f"{row['english']!r} comes twice")
        adjectives[row["english"]] = adjective(row)
    return adjectives


def adjective(row: DataRow) -> Adjective:
    """Build an adjective from its row."""
    position = row.choice("position", POSITIONS)
    masculine = row["masculine"]
    feminine = row["feminine"] or agreement.french_feminine(masculine)
    plurals = (agreement.french_plural(masculine), agreement.french_plural(feminine))
    return Adjective(
        english=row["english"],
        forms=(masculine,) * 4
        if position == "invariable"
        else (masculine, feminine, *plurals),
        before_vowel=row["before_vowel"] or masculine,
        precedes=position == "before",
    )


def read_adjective_sets(
    file: Path, adjectives: Mapping[str, Adjective]
) -> dict[str, WordSet[Adjective]]:
    """Read the sets of adjectives, which name adjectives by their English form."""
    sets: dict[str, WordSet[Adjective]] = {}
    for row in read_table(file, "set common", "rare"):
        if row["set"] in sets:
            raise row.fault(f"the set {row['set']!r} comes twice")
        common, rare = (
            [row.look_up(word, adjectives, "adjective") for word in row[column].split()]
            for column in FREQUENCIES
        )
        sets[row["set"]] = WordSet(common, rare)
    return sets


def verb(row: DataRow) -> Verb:
    """Build a verb from its row."""
    first, _, particle = row["english"].partition(" ")
    past = row["english_past"] or f"{agreement.english_past(first)} {particle}".strip()
    stem = row["french"].removesuffix("er")
    return Verb(
        english=row["english"],
        english_past=past,
        english_participle=row["english_participle"] or past,
        french=row["french"],
        singular=row["singular"] or f"{stem}e",
        plural=row["plural"] or f"{stem}ent",
        participle=row["participle"] or f"{stem}é",
        future_stem=row["future_stem"] or row["french"].removesuffix("e"),
        with_etre=row.choice("auxiliary", ("avoir", "être")) == "être",
    )


def read_word_sets(
    file: Path, build: Callable[[DataRow], Item], required: str = "", optional: str = ""
) -> dict[str, WordSet[Item]]:
    """Read the sets of a table.

    Args:
        file: the table.
        build: makes a word of a row.
        required: the columns that are never empty, behind those that all these tables have.
        optional: the columns that may be empty.

    Raises:
        UserError: a set has a word twice, or no common word ahead of its rare ones.
    """
    sets: dict[str, dict[str, list[Item]]] = {}
    seen: set[tuple[str, str]] = set()
    for row in read_table(file, f"set frequency english french {required}", optional):
        words = sets.setdefault(row["set"], {"common": [], "rare": []})
        frequency = row.choice("frequency", FREQUENCIES)
        if frequency == "rare" and not words["common"]:
            raise row.fault(
                f"the common words of the set {row['set']!r} must come first"
            )
        if (row["set"], row["english"]) in seen:
            raise row.fault(f"{row['english']!r} comes twice in the set {row['set']!r}")
        seen.add((row["set"], row["english"]))
        words[frequency].append(build(row))
    return {
        name: WordSet(words["common"], words["rare"]) for name, words in sets.items()
    }
