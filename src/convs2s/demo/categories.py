"""The categories of slots: for each category, how to draw what fills it.

A slot of a template is named by its category, with a digit where a template has two of a category
(``thing``, ``thing2``).
"""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from convs2s.demo import adjectives as adj
from convs2s.demo import expressions, names, nouns, quantities, verbs
from convs2s.demo.fillers import Action, Filler, Fixed, Name, NounPhrase, Quality
from convs2s.demo.lexicon import Adjective, Noun, Verb

Item = TypeVar("Item")
Draw = Callable[[random.Random], Filler]

RARE_SHARE = 0.1
"""How often a rare word is drawn where a category has common and rare ones."""

SKEW = 1.5
"""How much more often the first of a table are drawn than the last; at 1 all are alike."""

NAMED_SHARE = 0.3
"""How often a person is one with a name."""


def either(rng: random.Random, common: Sequence[Item], rare: Sequence[Item]) -> Item:
    """Draw from the common items, the first ones most often, and now and then a rare one."""
    if rare and rng.random() < RARE_SHARE:
        return rng.choice(rare)
    return common[int(len(common) * rng.random() ** SKEW)]


def some_adjectives(
    rng: random.Random, common: Sequence[Adjective], rare: Sequence[Adjective]
) -> tuple[Adjective, ...]:
    """Draw no, one or two adjectives; of two, one stands before the French noun, one behind it."""
    share = rng.random()
    if share < 0.45 or not common:
        return ()
    one = either(rng, common, rare)
    if share < 0.8:
        return (one,)
    two = either(rng, common, rare)
    return (one, two) if one.precedes and not two.precedes else (one,)


def noun_phrase(
    common: Sequence[Noun],
    rare: Sequence[Noun],
    adjectives: Sequence[Adjective] = (),
    rare_adjectives: Sequence[Adjective] = (),
    numbers: str = "singular",
) -> Draw:
    """Return a category of noun phrases.

    Args:
        common: the nouns.
        rare: more nouns, seldom drawn.
        adjectives: the adjectives that these nouns may take.
        rare_adjectives: more adjectives, seldom drawn.
        numbers: the numbers to draw from, out of singular, plural, counted and mass.
    """
    choices = numbers.split()

    def draw(rng: random.Random) -> NounPhrase:
        """Draw one noun phrase."""
        number = rng.choice(choices)
        return NounPhrase(
            either(rng, common, rare),
            some_adjectives(rng, adjectives, rare_adjectives),
            plural=number in ("plural", "counted"),
            count=rng.choice(quantities.COUNTS[:5]) if number == "counted" else None,
            mass=number == "mass",
        )

    return draw


def expression(common: Sequence[tuple[str, str]], rare: Sequence[tuple[str, str]] = ()) -> Draw:
    """Return a category of fixed expressions."""

    def draw(rng: random.Random) -> Fixed:
        english, french = either(rng, common, rare)
        return Fixed(english, french, (english,))

    return draw


def quantity(function: Callable[[random.Random], tuple[str, str]]) -> Draw:
    """Return a category of numbers, dates or prices."""
    return lambda rng: Fixed(*function(rng))


def quality(common: Sequence[Adjective], rare: Sequence[Adjective] = ()) -> Draw:
    """Return a category of adjectives that stand alone."""
    return lambda rng: Quality(either(rng, common, rare))


def action(common: Sequence[Verb], rare: Sequence[Verb] = ()) -> Draw:
    """Return a category of verbs."""
    return lambda rng: Action(either(rng, common, rare))


def named(rng: random.Random) -> Name:
    """Draw a person with a rare name: ``Mrs. Katilen``."""
    english, french, gender = rng.choice(names.TITLES)
    name = names.family_name(rng)
    return Name(f"{english} {name}", f"{french} {name}", gender)


def friend(rng: random.Random) -> Name:
    """Draw a common first name."""
    name, gender = rng.choice(names.FIRST_NAMES)
    return Name(name, name, gender)


def town(rng: random.Random) -> Fixed:
    """Draw the rare name of a town."""
    name = names.town_name(rng)
    return Fixed(name, name)


PEOPLE = (nouns.PEOPLE + nouns.CHILDREN, nouns.RARE_PEOPLE)
ADULTS = (nouns.PEOPLE, nouns.RARE_PEOPLE, adj.OF_PEOPLE, adj.RARE_OF_PEOPLE)
CHILDREN = (nouns.CHILDREN, (), adj.OF_CHILDREN, adj.RARE_OF_PEOPLE)
THINGS = (nouns.THINGS, nouns.RARE_THINGS)
ADJECTIVES_OF_THINGS = (adj.OF_THINGS, adj.RARE_OF_THINGS)
VEHICLES_TOO = (nouns.THINGS + nouns.VEHICLES, nouns.RARE_THINGS + nouns.RARE_VEHICLES)
ANIMALS = (nouns.ANIMALS, nouns.RARE_ANIMALS, adj.OF_ANIMALS, adj.RARE_OF_ANIMALS)
CLOTHES = (nouns.CLOTHES, nouns.RARE_CLOTHES, adj.OF_CLOTHES, adj.RARE_OF_CLOTHES)
PRODUCE = (nouns.PRODUCE, nouns.RARE_PRODUCE, adj.OF_PRODUCE, adj.RARE_OF_PRODUCE)
FOOD = (nouns.INGREDIENTS, nouns.RARE_INGREDIENTS, adj.OF_FOOD, adj.RARE_OF_FOOD)
DRINKS = (nouns.DRINKS, nouns.RARE_DRINKS, adj.OF_DRINKS, adj.RARE_OF_DRINKS)
DISHES = (nouns.DISHES, nouns.RARE_DISHES, adj.OF_DISHES, adj.RARE_OF_DISHES)
BUILDINGS = (nouns.BUILDINGS, nouns.RARE_BUILDINGS, adj.OF_BUILDINGS, adj.RARE_OF_BUILDINGS)

ANY_NUMBER = "singular singular plural counted"

adults = noun_phrase(*ADULTS, ANY_NUMBER)
children = noun_phrase(*CHILDREN, ANY_NUMBER)


def person(rng: random.Random) -> Filler:
    """Draw one or more people: a noun phrase, a first name, or a person with a rare name."""
    if rng.random() < NAMED_SHARE:
        return named(rng)
    if rng.random() < 0.15:
        return friend(rng)
    return children(rng) if rng.random() < 0.25 else adults(rng)


CATEGORIES: dict[str, Draw] = {
    "person": person,
    "named": named,
    "friend": friend,
    "adult": adults,
    "someone": noun_phrase(*PEOPLE),
    "group": noun_phrase(*PEOPLE, numbers="plural counted"),
    "relative": noun_phrase(nouns.FAMILY, nouns.RARE_FAMILY),
    "town": town,
    "animal": noun_phrase(*ANIMALS, ANY_NUMBER),
    "pet": noun_phrase(*ANIMALS),
    "thing": noun_phrase(*VEHICLES_TOO, *ADJECTIVES_OF_THINGS, ANY_NUMBER),
    "item": noun_phrase(*THINGS, *ADJECTIVES_OF_THINGS),
    "object": noun_phrase(*THINGS),
    "objects": noun_phrase(*THINGS, numbers="plural"),
    "tableware": noun_phrase(nouns.TABLEWARE, nouns.RARE_TABLEWARE),
    "things": noun_phrase(*VEHICLES_TOO, *ADJECTIVES_OF_THINGS, "plural counted"),
    "garment": noun_phrase(*CLOTHES),
    "produce": noun_phrase(*PRODUCE, "plural"),
    "fruit": noun_phrase(*PRODUCE[:2], numbers="plural"),
    "food": noun_phrase(*FOOD, "mass"),
    "ingredient": noun_phrase(*FOOD[:2], numbers="mass"),
    "drink": noun_phrase(*DRINKS, "mass"),
    "dish": noun_phrase(*DISHES),
    "course": noun_phrase(*DISHES[:2]),
    "place": noun_phrase(nouns.PLACES, nouns.RARE_PLACES),
    "sight": noun_phrase(nouns.SIGHTS, nouns.RARE_SIGHTS),
    "building": noun_phrase(*BUILDINGS),
    "room": noun_phrase(nouns.ROOMS, nouns.RARE_ROOMS),
    "surface": noun_phrase(nouns.SURFACES, nouns.RARE_SURFACES),
    "subject": noun_phrase(nouns.SUBJECTS, nouns.RARE_SUBJECTS),
    "game": noun_phrase(nouns.GAMES, nouns.RARE_GAMES),
    "instrument": noun_phrase(nouns.INSTRUMENTS, nouns.RARE_INSTRUMENTS),
    "nuisance": noun_phrase(nouns.NUISANCES, nouns.RARE_NUISANCES),
    "color": quality(adj.COLORS, adj.RARE_COLORS),
    "quality": quality(adj.QUALITIES, adj.RARE_QUALITIES),
    "fault": quality(adj.FAULTS, adj.RARE_FAULTS),
    "size": quality(adj.SIZES, adj.RARE_SIZES),
    "mood": quality(adj.MOODS, adj.RARE_MOODS),
    "joy": quality(adj.JOYS, adj.RARE_JOYS),
    "see": action(verbs.SEE, verbs.RARE_SEE),
    "get": action(verbs.GET, verbs.RARE_GET),
    "treat": action(verbs.TREAT, verbs.RARE_TREAT),
    "cook": action(verbs.COOK, verbs.RARE_COOK),
    "move": action(verbs.MOVE),
    "do": action(verbs.DO, verbs.RARE_DO),
    "count": expression(quantities.COUNTS),
    "ordinal": expression(quantities.ORDINALS),
    "month": expression(quantities.MONTHS),
    "weekday": expression(quantities.WEEKDAYS),
    "past": expression(expressions.PAST),
    "future": expression(expressions.FUTURE),
    "habit": expression(expressions.HABIT),
    "weather": expression(expressions.WEATHER),
    "country": expression(expressions.COUNTRIES),
    "job": expression(expressions.JOBS, expressions.RARE_JOBS),
    "amount": expression(expressions.AMOUNTS),
    "chore": expression(expressions.CHORES),
    "reason": expression(expressions.REASONS),
    "manner": expression(expressions.MANNERS),
    "number": quantity(quantities.number),
    "small": quantity(quantities.small_number),
    "decimal": quantity(quantities.decimal),
    "thousands": quantity(quantities.thousands),
    "grams": quantity(quantities.grams),
    "price": quantity(quantities.price),
    "cost": quantity(quantities.high_price),
    "year": quantity(quantities.year),
    "day": quantity(quantities.day),
    "date": quantity(quantities.date),
    "time": quantity(quantities.time),
    "early": quantity(quantities.early),
    "late": quantity(quantities.late),
    "score": quantity(quantities.score),
}
