"""What can fill a slot of a template: noun phrases, names, verbs, adjectives, fixed expressions.

A filler renders itself in either language in a named form, such as ``the`` or ``past``. Some forms
depend on another filler of the sentence: a verb on its subject, a possessive on the owner.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from demo_corpus import agreement
from demo_corpus.words import Adjective, Noun, Verb


class Filler(Protocol):
    """What a template asks of the filler of a slot."""

    @property
    def lexemes(self) -> tuple[str, ...]:
        """The dictionary words in it, in English; none for numbers, dates and names."""

    @property
    def gender(self) -> str:
        """The French gender, ``m`` or ``f``."""

    @property
    def plural(self) -> bool:
        """Whether it is a plural."""

    def english(self, form: str, other: "Filler | None") -> str:
        """Return the English text of a form."""

    def french(self, form: str, other: "Filler | None") -> str:
        """Return the French text of a form, before elision and contraction."""


ENGLISH_DETERMINERS = {
    # form: (singular, plural or mass)
    "": ("", ""),
    "the": ("the", "the"),
    "a": ("a", "some"),
    "this": ("this", "these"),
    "my": ("my", "my"),
}

FRENCH_DETERMINERS = {
    # form: (masculine, feminine, masculine plural, feminine plural)
    "": ("", "", "", ""),
    "le": ("le", "la", "les", "les"),
    "un": ("un", "une", "des", "des"),
    "ce": ("ce", "cette", "ces", "ces"),
    "mon": ("mon", "ma", "mes", "mes"),
    "son": ("son", "sa", "ses", "ses"),
    "leur": ("leur", "leur", "leurs", "leurs"),
    "quel": ("quel", "quelle", "quels", "quelles"),
}

BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "sa": "son"}


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its adjectives: singular, plural, counted ("two", "deux") or mass ("water").

    Its forms are the determiners of the two tables above; beside them the English ``its`` and the
    French ``son`` give the possessive of the other filler (his, her, their; son, sa, ses, leur).
    """

    noun: Noun
    adjectives: tuple[Adjective, ...] = ()
    plural: bool = False
    count: tuple[str, str] | None = None
    mass: bool = False

    @property
    def gender(self) -> str:
        """The noun's French gender."""
        return self.noun.gender

    @property
    def lexemes(self) -> tuple[str, ...]:
        """The noun and its adjectives."""
        return (
            self.noun.english,
            *(adjective.english for adjective in self.adjectives),
        )

    def english(self, form: str, other: Filler | None) -> str:
        """Return the phrase with a determiner: ``the two small red cars``."""
        words = [adjective.english for adjective in self.adjectives]
        words.append(self.noun.english_plural if self.plural else self.noun.english)
        if self.count:
            words.insert(0, self.count[0])
        determiner = self._english_determiner(form, other)
        return " ".join([determiner, *words] if determiner else words)

    def _english_determiner(self, form: str, other: Filler | None) -> str:
        if form == "its":
            if other is None:
                raise ValueError("a possessive needs its owner: {thing.its person}")
            if other.plural:
                return "their"
            return "his" if other.gender == "m" else "her"
        if form == "a" and self.count:
            return ""
        return ENGLISH_DETERMINERS[form][self.plural or self.mass]

    def french(self, form: str, other: Filler | None) -> str:
        """Return the phrase with a determiner: ``les deux petites voitures rouges``."""
        words = [self.noun.french_plural if self.plural else self.noun.french]
        for adjective in reversed(self.adjectives):
            agreed = adjective.agree(self.gender, self.plural, following=words[0])
            words = [agreed, *words] if adjective.precedes else [*words, agreed]
        if self.count:
            words.insert(0, self.count[1])
        determiner = self._french_determiner(form, other, following=words[0])
        return " ".join([determiner, *words] if determiner else words)

    def _french_determiner(
        self, form: str, other: Filler | None, following: str
    ) -> str:
        if form == "un" and self.mass:
            return f"de {self._french_determiner('le', other, following)}"
        if form == "un" and self.count:
            return ""
        if (
            form == "un"
            and self.plural
            and any(word.precedes for word in self.adjectives)
        ):
            return "de"  # not "des": "de belles lampes"
        if form == "son" and other is not None and other.plural:
            form = "leur"
        plural = self.plural or self.noun.always_plural
        determiner = agreement.agreeing(FRENCH_DETERMINERS[form], self.gender, plural)
        if agreement.opens_with_vowel(following):
            return BEFORE_VOWEL.get(determiner, determiner)
        return determiner


@dataclass(frozen=True)
class Fixed:
    """What has one form: ``two weeks ago``, ``Mrs. Katilen``, or a number, a date, a price."""

    in_english: str
    in_french: str
    gender: str = "m"
    plural: bool = False
    lexemes: tuple[str, ...] = ()

    def english(self, form: str, other: Filler | None) -> str:
        """Return the text, whatever the form."""
        return self.in_english

    def french(self, form: str, other: Filler | None) -> str:
        """Return the text, whatever the form."""
        return self.in_french


@dataclass(frozen=True)
class Quality:
    """An adjective that stands alone: ``heavy``; in French it agrees with the other filler."""

    adjective: Adjective
    gender: str = "m"
    plural: bool = False

    @property
    def lexemes(self) -> tuple[str, ...]:
        """The adjective."""
        return (self.adjective.english,)

    def english(self, form: str, other: Filler | None) -> str:
        """Return the adjective."""
        return self.adjective.english

    def french(self, form: str, other: Filler | None) -> str:
        """Return the adjective in the gender and number of the other filler, if there is one."""
        noun = other or self
        return self.adjective.agree(noun.gender, noun.plural)


@dataclass(frozen=True)
class Action:
    """A verb; its subject is the other filler, or a singular one where none is given.

    English forms: base, present, past, participle, ing. French forms: infinitive, present, past
    (the compound one), participle, future, imperfect.
    """

    verb: Verb
    gender: str = "m"
    plural: bool = False

    @property
    def lexemes(self) -> tuple[str, ...]:
        """The verb."""
        return (self.verb.english,)

    def english(self, form: str, other: Filler | None) -> str:
        """Return a form of the verb, its particle included: ``looks for``."""
        verb = self.verb
        if form in ("past", "participle"):
            return verb.english_past if form == "past" else verb.english_participle
        first, _, particle = verb.english.partition(" ")
        if form == "ing":
            first = agreement.english_ing(first)
        elif form == "present" and not (other and other.plural):
            first = agreement.with_s(first)
        return f"{first} {particle}".strip()

    def french(self, form: str, other: Filler | None) -> str:
        """Return a form of the verb: ``voit``, ``a vu``, ``verra``, ``voyait``."""
        verb, plural = self.verb, other is not None and other.plural
        forms = {
            "infinitive": verb.french,
            "present": verb.plural if plural else verb.singular,
            "participle": verb.participle,
            "past": f"{'ont' if plural else 'a'} {verb.participle}",
            "future": verb.future_stem + ("ont" if plural else "a"),
            # The stem of these verbs is the same in all persons of the present's plural.
            "imperfect": verb.plural.removesuffix("ent")
            + ("aient" if plural else "ait"),
        }
        if form == "past" and verb.with_etre and other is not None:
            agreed = verb.participle + "e" * (other.gender == "f") + "s" * plural
            return f"{'sont' if plural else 'est'} {agreed}"
        return forms[form]


def repeats_a_word(fillers: Iterable[Filler]) -> bool:
    """Say whether two fillers hold the same dictionary word, name, number, date or price."""
    words = [
        word
        for filler in fillers
        for word in (filler.lexemes or (filler.english("", None),))
    ]
    return len(words) != len(set(words))
