"""Templates: a pair of patterns, English and French, over the same slots.

``data/templates.yaml`` lists them and says what may stand in the braces of a pattern.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from demo_corpus.agreement import agreeing, english_surface, french_surface
from demo_corpus.fillers import Filler

SLOT = re.compile(r"\{(\w+)(?:\.(\w+))?(?: (\w+))?(?:\?([^}]*))?\}")


def category_of(slot: str) -> str:
    """Return the category of a slot: ``thing`` for ``thing2``."""
    return slot.rstrip("0123456789")


@dataclass(frozen=True)
class Template:
    """A pair of patterns over the same slots."""

    english: str
    french: str

    @cached_property
    def slots(self) -> list[str]:
        """The names of the slots in the order of the English pattern."""
        return list(
            dict.fromkeys(match.group(1) for match in SLOT.finditer(self.english))
        )


@dataclass(frozen=True)
class Sentence:
    """A template with its slots filled."""

    template: Template
    fillers: dict[str, Filler]

    def english(self) -> str:
        """Return the English text."""
        return english_surface(self.filled("english"))

    def french(self) -> str:
        """Return the French text."""
        return french_surface(self.filled("french"))

    def filled(self, language: Literal["english", "french"]) -> str:
        """Return the text of a language in its underlying form."""

        def text(match: re.Match[str]) -> str:
            slot, form, other, variants = match.groups()
            filler = self.fillers[slot]
            if variants is not None:
                return variant(filler, variants)
            render = filler.english if language == "english" else filler.french
            return render(form or "", self.fillers[other] if other else None)

        pattern = (
            self.template.english if language == "english" else self.template.french
        )
        return SLOT.sub(text, pattern)

    def combinations(self) -> frozenset[tuple[str, str, str]]:
        """Return the template-slot combinations: (English pattern, slot, dictionary word).

        A combination says that a noun, verb, adjective or expression stands in a certain slot of a
        certain template. Numbers, dates, prices, names and first names take no part in it.
        """
        return frozenset(
            (self.template.english, slot, lexeme)
            for slot, filler in self.fillers.items()
            for lexeme in filler.lexemes
        )


def variant(filler: Filler, variants: str) -> str:
    """Choose among texts for singular and plural, or for both genders in both numbers."""
    texts = variants.split("|")
    if len(texts) == 2:
        return texts[filler.plural]
    return agreeing(texts, filler.gender, filler.plural)
