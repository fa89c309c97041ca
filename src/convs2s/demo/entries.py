"""Entries of the bilingual dictionary: nouns, adjectives and verbs with all their forms."""

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
