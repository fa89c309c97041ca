"""The categories of slots: for each category, how to draw what fills it.

A slot of a template is named by its category, with a digit where a template has two of a category
(``thing``, ``thing2``). The categories of words are those of a table; those of names, numbers and
dates are defined here.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from demo_corpus import quantities
from demo_corpus.data_files import DataRow, read_table, require
from demo_corpus.fillers import Action, Filler, Fixed, NounPhrase, Quality
from demo_corpus.names import read_names
from demo_corpus.words import (
    Adjective,
    Expression,
    Noun,
    WordLists,
    WordSet,
    read_word_lists,
)

Member = TypeVar("Member")
Draw = Callable[[random.Random], Filler]

NAMED_SHARE = 0.3
"""How often a person is one with a name."""

PARTS_OF_SPEECH = ("noun", "adjective", "verb", "expression")
NUMBERS = ("singular", "plural", "counted", "mass")


def some_adjectives(
    rng: random.Random, adjectives: WordSet[Adjective]
) -> tuple[Adjective, ...]:
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
    rng: random.Random,
    nouns: WordSet[Noun],
    adjectives: WordSet[Adjective],
    numbers: Sequence[str],
    counts: Sequence[Expression],
) -> NounPhrase:
    """Draw a noun phrase: its number is one of some ``NUMBERS``, its count like (two, deux)."""
    number = rng.choice(numbers)
    return NounPhrase(
        nouns.draw(rng),
        some_adjectives(rng, adjectives),
        plural=number in ("plural", "counted"),
        count=rng.choice(counts) if number == "counted" else None,
        mass=number == "mass",
    )


def expression(rng: random.Random, expressions: WordSet[Expression]) -> Fixed:
    """Draw a fixed expression."""
    english, french = expressions.draw(rng)
    return Fixed(english, french, lexemes=(english,))


def quantity(function: Callable[[random.Random], tuple[str, str]]) -> Draw:
    """Return a category of numbers, dates or prices."""
    return lambda rng: Fixed(*function(rng))


def person(rng: random.Random, categories: Mapping[str, Draw]) -> Filler:
    """Draw a person: one with a rare name, one with a first name, or a noun phrase."""
    if rng.random() < NAMED_SHARE:
        return categories["named"](rng)
    if rng.random() < 0.15:
        return categories["friend"](rng)
    return categories["child" if rng.random() < 0.25 else "adult"](rng)


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


def read_categories(folder: Path) -> dict[str, Draw]:
    """Return all categories: those of names and quantities, and those of a table.

    Raises:
        UserError: a table is malformed, or refers to a set of words that is not there.
    """
    names, lists = read_names(folder), read_word_lists(folder)
    categories = quantity_categories(lists.expressions["months"].common)
    categories |= {"named": names.named, "friend": names.friend, "town": names.town}
    categories["person"] = partial(person, categories=categories)
    file = folder / "categories.tsv"
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
        adjectives = chosen(row, lists.adjectives)
        return lambda rng: Quality(adjectives.draw(rng))
    if part == "verb":
        verbs = chosen(row, lists.verbs)
        return lambda rng: Action(verbs.draw(rng))
    return partial(expression, expressions=chosen(row, lists.expressions))


def category_of_nouns(row: DataRow, lists: WordLists) -> Draw:
    """Return the category of noun phrases that a row of the table describes."""
    numbers = row["numbers"].split() or ["singular"]
    for number in numbers:
        if number not in NUMBERS:
            raise row.fault(
                f"numbers has {number!r}; expected some of: {', '.join(NUMBERS)}"
            )
    adjectives: WordSet[Adjective] = WordSet()
    if row["adjectives"]:
        adjectives = row.look_up(
            row["adjectives"], lists.adjectives, "set of adjectives"
        )
    return partial(
        noun_phrase,
        nouns=chosen(row, lists.nouns),
        adjectives=adjectives,
        numbers=numbers,
        counts=lists.expressions["counts"].common[:5],
    )


def chosen(row: DataRow, sets: Mapping[str, WordSet[Member]]) -> WordSet[Member]:
    """Return the words of the sets that a row names."""
    what = f"set of {row['filled_by']}s"
    named = (row.look_up(name, sets, what) for name in row["words"].split())
    return sum(named, WordSet[Member]())
