"""Entries of the bilingual lexicon, and the plain-text tables that they are read from.

A table has one entry a line, ``english: french``, each side a list of forms parted by commas.
Regular forms are left out:

* noun: ``man, men: homme, m`` (singular, plural: singular, gender, plural); the gender ``mp`` or
  ``fp`` says that the French noun has a plural only;
* adjective: ``white: blanc, blanche`` (masculine, feminine, masculine before a vowel);
* verb: ``see, saw, seen: voir, voit, voient, vu, verr`` (base, past, participle: infinitive,
  third persons singular and plural of the present, past participle, stem of the future).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from convs2s.demo import agreement


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
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before_vowel: str
    precedes: bool

    def agree(self, gender: str, plural: bool, following: str = "") -> str:
        """Return the French form for a gender and number; ``following`` is the word after it."""
        if gender == "f":
            return self.feminine_plural if plural else self.feminine
        if plural:
            return self.masculine_plural
        return self.before_vowel if agreement.opens_with_vowel(following) else self.masculine


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

    def imperfect_stem(self) -> str:
        """Return the stem of the imperfect, for verbs whose stem is the same in all persons."""
        return self.plural.removesuffix("ent")


def nouns(table: str) -> list[Noun]:
    """Read a table of nouns."""
    return [noun(english, french) for english, french in entries(table)]


def noun(english: list[str], french: list[str]) -> Noun:
    """Build a noun from its listed forms."""
    singular, gender, *plural = french
    return Noun(
        english=english[0],
        english_plural=english[1] if len(english) > 1 else agreement.with_s(english[0]),
        french=singular,
        french_plural=plural[0] if plural else agreement.french_plural(singular),
        gender=gender[0],
        always_plural=gender.endswith("p"),
    )


def adjectives(table: str, precedes: bool) -> dict[str, Adjective]:
    """Read a table of adjectives, by their English form."""
    return {
        english[0]: adjective(english[0], french, precedes) for english, french in entries(table)
    }


def adjective(english: str, french: list[str], precedes: bool) -> Adjective:
    """Build an adjective from its listed forms."""
    masculine = french[0]
    feminine = french[1] if len(french) > 1 else agreement.french_feminine(masculine)
    return Adjective(
        english=english,
        masculine=masculine,
        feminine=feminine,
        masculine_plural=agreement.french_plural(masculine),
        feminine_plural=agreement.french_plural(feminine),
        before_vowel=french[2] if len(french) > 2 else masculine,
        precedes=precedes,
    )


def invariable_adjectives(table: str) -> dict[str, Adjective]:
    """Read a table of adjectives that have one French form, all of them after the noun."""
    return {
        english[0]: Adjective(
            english=english[0],
            masculine=french[0],
            feminine=french[0],
            masculine_plural=french[0],
            feminine_plural=french[0],
            before_vowel=french[0],
            precedes=False,
        )
        for english, french in entries(table)
    }


def verbs(table: str, with_etre: bool = False) -> list[Verb]:
    """Read a table of verbs; ``with_etre``: their compound past is made with être."""
    return [verb(english, french, with_etre) for english, french in entries(table)]


def verb(english: list[str], french: list[str], with_etre: bool) -> Verb:
    """Build a verb from its listed forms; with an infinitive alone it is a regular one in -er."""
    base, *rest = english
    first, _, particle = base.partition(" ")
    past = rest[0] if rest else f"{agreement.english_past(first)} {particle}".strip()
    stem = french[0].removesuffix("er")
    regular = [french[0], f"{stem}e", f"{stem}ent", f"{stem}é", french[0].removesuffix("e")]
    infinitive, singular, plural, participle, future_stem = french + regular[len(french) :]
    return Verb(
        english=base,
        english_past=past,
        english_participle=rest[1] if len(rest) > 1 else past,
        french=infinitive,
        singular=singular,
        plural=plural,
        participle=participle,
        future_stem=future_stem,
        with_etre=with_etre,
    )


def pairs(table: str) -> list[tuple[str, str]]:
    """Read a table of fixed expressions: ``english: french``."""
    return [(english.strip(), french.strip()) for english, french in sides(table)]


def words(table: str) -> list[str]:
    """Read a table of single words, parted by spaces."""
    return table.split()


def entries(table: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the lists of forms of each line of a table."""
    for english, french in sides(table):
        yield (
            [form.strip() for form in english.split(",")],
            [form.strip() for form in french.split(",")],
        )


def sides(table: str) -> Iterator[tuple[str, str]]:
    """Yield the two sides of each line of a table."""
    for line in table.strip().splitlines():
        english, _, french = line.partition(":")
        yield english, french
