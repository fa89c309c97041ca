"""Numbers, prices, dates and times: each function draws one and returns it in both languages.

English writes 1,250.50 and May 3, 1998 and 8:30 in the evening; French writes 1 250,50 and
3 mai 1998 and 8 h 30 du soir.
"""

import random
from collections.abc import Sequence

MORNING = ("in the morning", "du matin", range(5, 12))
AFTERNOON = ("in the afternoon", "de l'après-midi", range(1, 6))
EVENING = ("in the evening", "du soir", range(6, 11))
MINUTES = ["05", "10", "15", "20", "30", "40", "45", "50"]
YEARS = range(1960, 2025)
DIGITS = [("two", "deux"), ("three", "trois")]


def whole_number(rng: random.Random, numbers: range) -> tuple[str, str]:
    """Return one of some numbers, in digits that are the same in both languages."""
    digits = str(rng.choice(numbers))
    return digits, digits


def decimal(rng: random.Random) -> tuple[str, str]:
    """Return a decimal number: 12.5, 12,5."""
    whole, tenth = rng.choice(range(2, 30)), rng.choice([2, 4, 5, 8])
    return f"{whole}.{tenth}", f"{whole},{tenth}"


def thousands(rng: random.Random) -> tuple[str, str]:
    """Return a round number of four or five digits: 3,400, 3 400."""
    head, tail = rng.choice(range(1, 31)), rng.choice(range(1, 10)) * 100
    return f"{head},{tail}", f"{head} {tail}"


def price(rng: random.Random) -> tuple[str, str]:
    """Return a small price: €4.50, 4,50 euros."""
    euros, cents = rng.choice(range(2, 20)), rng.choice([20, 50, 75, 90])
    return f"€{euros}.{cents}", f"{euros},{cents} euros"


def high_price(rng: random.Random) -> tuple[str, str]:
    """Return a high price: €1,250.50, 1 250,50 euros."""
    head, tail = rng.choice(range(1, 10)), rng.choice(range(100, 1000, 50))
    cents = rng.choice([25, 50, 75])
    return f"€{head},{tail}.{cents}", f"{head} {tail},{cents} euros"


def day(rng: random.Random, months: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return a day of the year: May 3, 3 mai; May 1, 1er mai."""
    date = rng.choice(range(1, 29))
    english, french = rng.choice(months)
    return f"{english} {date}", f"{'1er' if date == 1 else date} {french}"


def date(rng: random.Random, months: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return a date with its year: May 3, 1998, 3 mai 1998."""
    (english, french), year = day(rng, months), rng.choice(YEARS)
    return f"{english}, {year}", f"{french} {year}"


def time(rng: random.Random, part_of_day: tuple[str, str, range]) -> tuple[str, str]:
    """Return a time within a part of the day: 8:30 in the evening, 8 h 30 du soir."""
    english, french, hours = part_of_day
    hour, minutes = rng.choice(hours), rng.choice(MINUTES)
    return f"{hour}:{minutes} {english}", f"{hour} h {minutes} {french}"


def time_of_any_part(rng: random.Random) -> tuple[str, str]:
    """Return a time of day."""
    return time(rng, rng.choice([MORNING, AFTERNOON, EVENING]))


def score(rng: random.Random) -> tuple[str, str]:
    """Return the result of a match: 3 to 1, 3 à 1."""
    lost = rng.choice(range(0, 4))
    won = lost + rng.choice([1, 2, 3])
    return f"{won} to {lost}", f"{won} à {lost}"


def code(rng: random.Random) -> tuple[str, str]:
    """Return five numbers of two digits, digit by digit; French has the units before the tens."""
    pairs = [(rng.choice(DIGITS), rng.choice(DIGITS)) for _ in range(5)]
    english = " ".join(f"{tens[0]} {units[0]}" for tens, units in pairs)
    return english, " ".join(f"{units[1]} {tens[1]}" for tens, units in pairs)
