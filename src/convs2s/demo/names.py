"""Names: a few common ones, and thousands made from syllables, rare enough to be unknown words.

A rare name is the same on both sides, so that a translator can only copy it.
"""

import random

from convs2s.demo.lexicon import words

SYLLABLES = words(
    "ba bo ca da do fa ga gi ka ko la li lo ma mi mo na no pa po ra ri ro sa so ta ti va vo za"
)
OPENINGS = [syllable.capitalize() for syllable in SYLLABLES] + ["A", "E", "I", "O"]
FAMILY_ENDINGS = words("dek len mar nov rick sten ton vic")
TOWN_ENDINGS = words("berg dal grad mont stad vik")
FAMILY_NAMES = [a + b + c for a in OPENINGS for b in SYLLABLES for c in FAMILY_ENDINGS]
TOWN_NAMES = [a + b + c for a in OPENINGS for b in SYLLABLES for c in TOWN_ENDINGS]
RARE_NAMES = frozenset(FAMILY_NAMES + TOWN_NAMES)

FIRST_NAMES = [
    ("Anna", "f"),
    ("Paul", "m"),
    ("Emma", "f"),
    ("Lucas", "m"),
    ("Julie", "f"),
    ("Marc", "m"),
    ("Alice", "f"),
    ("Thomas", "m"),
    ("Clara", "f"),
    ("Louis", "m"),
]

TITLES = [("Mr.", "M.", "m"), ("Mrs.", "Mme", "f"), ("Doctor", "le docteur", "m")]


def family_name(rng: random.Random) -> str:
    """Return a rare family name."""
    return rng.choice(FAMILY_NAMES)


def town_name(rng: random.Random) -> str:
    """Return a rare name of a town."""
    return rng.choice(TOWN_NAMES)
