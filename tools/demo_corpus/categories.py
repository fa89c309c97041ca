"""The categories of slots: for each category, how to draw what fills it.

A slot of a template is named by its category, with a digit where a template has two of a category
(``thing``, ``thing2``). The categories of words are those of a table; those of names, numbers and
dates are defined here.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import TypeVar

from demo_corpus import quantities
from demo_corpus.data_files import DataRow, read_table, require
from demo_corpus.fillers import Action, Filler, Fixed, NounPhrase, Quality
from demo_corpus.names import NameLists
from demo_corpus.words import Adjective, Expression, Noun, Verb, WordLists, WordSet

Member = TypeVar("Member")
Draw = Callable[[random.Random], Filler]

NAMED_SHARE = 0.3
"""How often a person is one with a name."""

PARTS_OF_SPEECH = ("noun", "adjective", "verb", "expression")
NUMBERS = ("singular", "plural", "counted", "mass")


def some_adjectives(rng: random.Random, adjectives: WordSet[Adjective]) -> tuple[Adjective, ...]:
    """Draw no, one or two adjectives; of two, one stands before the French noun, one behind it."""
    share = rng.random()
    if share < 0.45 or not adjectives.common:
        return ()
    one = adjectives.draw(rng)
    if share < 0.8:
        return (one,)
    two = adjectives.draw(rng)
    return (one, two) if one.precedes and not two.precedes else (one,)


def noun_phrase(
    nouns: WordSet[Noun],
    adjectives: WordSet[Adjective],
    numbers: Sequence[str],
    counts: Sequence[Expression],
) -> Draw:
    """Return a category of noun phrases.

    Args:
        nouns: the nouns.
        adjectives: the adjectives that these nouns may take.
        numbers: the numbers to draw from, out of ``NUMBERS``.
        counts: what a counted noun is counted by: (two, deux).
    """

    def draw(rng: random.Random) -> NounPhrase:
        """Draw one noun phrase."""
        number = rng.choice(numbers)
        return NounPhrase(
            nouns.draw(rng),
            some_adjectives(rng, adjectives),
            plural=number in ("plural", "counted"),
            count=rng.choice(counts) if number == "counted" else None,
            mass=number == "mass",
        )

    return draw


def expression(expressions: WordSet[Expression]) -> Draw:
    """Return a category of fixed expressions."""

    def draw(rng: random.Random) -> Fixed:
        english, french = expressions.draw(rng)
        return Fixed(english, french, lexemes=(english,))

    return draw


def quality(adjectives: WordSet[Adjective]) -> Draw:
    """Return a category of adjectives that stand alone."""
    return lambda rng: Quality(adjectives.draw(rng))


def action(verbs: WordSet[Verb]) -> Draw:
    """Return a category of verbs."""
    return lambda rng: Action(verbs.draw(rng))


def quantity(function: Callable[[random.Random], tuple[str, str]]) -> Draw:
    """Return a category of numbers, dates or prices."""
    return lambda rng: Fixed(*function(rng))


def person(categories: Mapping[str, Draw]) -> Draw:
    """Return the category of people: a noun phrase, a first name, or a rare name."""

    def draw(rng: random.Random) -> Filler:
        if rng.random() < NAMED_SHARE:
            return categories["named"](rng)
        if rng.random() < 0.15:
            return categories["friend"](rng)
        return categories["child" if rng.random() < 0.25 else "adult"](rng)

    return draw


def quantity_categories(months: Sequence[Expression]) -> dict[str, Draw]:
    """Return the categories of numbers, prices, dates and times."""
    functions: dict[str, Callable[[random.Random], tuple[str, str]]] = {
        "number": partial(quantities.whole_number, numbers=range(12, 61)),
        "small": partial(quantities.whole_number, numbers=range(2, 31)),
        "decimal": quantities.decimal,
        "thousands": quantities.thousands,
        "grams": partial(quantities.whole_number, numbers=range(50, 1000, 50)),
        "price": quantities.price,
        "cost": quantities.high_price,
        "year": partial(quantities.whole_number, numbers=quantities.YEARS),
        "day": partial(quantities.day, months=months),
        "date": partial(quantities.date, months=months),
        "time": quantities.time_of_any_part,
        "early": partial(quantities.time, part_of_day=quantities.MORNING),
        "late": partial(quantities.time, part_of_day=quantities.EVENING),
        "score": quantities.score,
        "code": quantities.code,
    }
    return {name: quantity(function) for name, function in functions.items()}


def read_categories(file: Path, lists: WordLists, names: NameLists) -> dict[str, Draw]:
    """Return all categories: those of names and quantities, and those of a table.

    Raises:
        UserError: the table is malformed, or refers to a set of words that is not there.
    """
    categories = quantity_categories(lists.expressions["months"].common)
    categories |= {"named": names.named, "friend": names.friend, "town": names.town}
    categories["person"] = person(categories)
    for row in read_table(file, "category filled_by words", "adjectives numbers"):
        if row["category"] in categories:
            raise row.fault(f"the category {row['category']!r} comes twice")
        categories[row["category"]] = category_of_words(row, lists)
    require(("adult", "child"), categories, file, "category")
    return categories


def category_of_words(row: DataRow, lists: WordLists) -> Draw:
    """Return the category that a row of the table describes."""
    part = row.choice("filled_by", PARTS_OF_SPEECH)
    if part == "noun":
        return category_of_nouns(row, lists)
    if row["adjectives"] or row["numbers"]:
        raise row.fault("only a category filled by noun takes adjectives and numbers")
    if part == "adjective":
        return quality(chosen(row, lists.adjectives))
    if part == "verb":
        return action(chosen(row, lists.verbs))
    return expression(chosen(row, lists.expressions))


def category_of_nouns(row: DataRow, lists: WordLists) -> Draw:
    """Return the category of noun phrases that a row of the table describes."""
    numbers = row["numbers"].split() or ["singular"]
    for number in numbers:
        if number not in NUMBERS:
            raise row.fault(f"numbers has {number!r}; expected some of: {', '.join(NUMBERS)}")
    adjectives: WordSet[Adjective] = WordSet()
    if row["adjectives"]:
        adjectives = row.look_up(row["adjectives"], lists.adjectives, "set of adjectives")
    counts = lists.expressions["counts"].common[:5]
    return noun_phrase(chosen(row, lists.nouns), adjectives, numbers, counts)


def chosen(row: DataRow, sets: Mapping[str, WordSet[Member]]) -> WordSet[Member]:
    """Return the words of the sets that a row names."""
    what = f"set of {row['filled_by']}s"
    return reduce(add, [row.look_up(name, sets, what) for name in row["words"].split()])
