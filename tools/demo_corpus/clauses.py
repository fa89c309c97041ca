"""The corpus of clauses: long sentences whose words stand elsewhere in the other language.

A sentence is a join of two or three clauses. The target's words are French and agree as in French,
its order is German: subordinate clauses change their place, their verb comes last, and a participle
waits for the end of its clause. Few words come again and again within a sentence, so that a word
alone does not say which of several it translates. The sentences are for comparing networks, as the
paper's ablations do: on the demo corpus most networks are right most of the time.

Which combinations are kept out of training is decided as in the demo corpus, clause by clause.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from demo_corpus.categories import Draw, read_categories
from demo_corpus.corpus import belongs, draw_splits
from demo_corpus.data_files import DATA, read_records
from demo_corpus.fillers import repeats_a_word
from demo_corpus.grammar import draw_fillers, faults
from demo_corpus.notation import Sentence, Template

JOINED_SIZES = {"test_filtered": 250, "test_rest": 50, "valid": 250, "train": 8_000}
CLAUSES = (1, 1, 1, 2, 2, 3)
"""How many clauses training sentences have; in validation and test there are no single ones."""

PLACE = re.compile(r"\[(\d)(?: (\w+))?\]")
WORD_ORDERS = ("main", "turned", "last")
Clause = Mapping[str, Template]
"""Word order -> template, all with the same English pattern."""


@dataclass(frozen=True)
class JoinedSentence(Sentence):
    """A sentence whose template, the join, has places for clauses.

    Attributes:
        clauses: for each clause, the word orders with the clause filled in that order.
    """

    clauses: Sequence[Mapping[str, Sentence]]

    def filled(self, language: Literal["english", "french"]) -> str:
        """Return the text of a language in its underlying form."""

        def clause(place: re.Match[str]) -> str:
            number, order = place.groups()
            return self.clauses[int(number) - 1][order or "main"].filled(language)

        return PLACE.sub(clause, super().filled(language))

    def combinations(self) -> frozenset[tuple[str, str, str]]:
        """Return the combinations of the clauses: (English pattern, slot, dictionary word)."""
        return frozenset().union(
            *(clause["main"].combinations() for clause in self.clauses)
        )


@dataclass(frozen=True)
class ClauseGrammar:
    """What sentences of clauses are drawn from."""

    categories: Mapping[str, Draw]
    clauses: Sequence[Clause]
    joins: Sequence[Template]

    def draw(self, rng: random.Random) -> JoinedSentence:
        """Draw a sentence: a join, its clauses, and a filler for each of their slots."""
        size = rng.choice(CLAUSES)
        join = rng.choice(
            [join for join in self.joins if len(PLACE.findall(join.english)) == size]
        )
        clauses = [self._draw_clause(rng) for _ in range(size)]
        return JoinedSentence(join, draw_fillers(rng, join, self.categories), clauses)

    def _draw_clause(self, rng: random.Random) -> dict[str, Sentence]:
        """Draw a clause, and fillers for it with no word twice."""
        clause = rng.choice(self.clauses)
        while True:
            fillers = draw_fillers(rng, clause["main"], self.categories)
            if not repeats_a_word(fillers.values()):
                return {
                    order: Sentence(template, fillers)
                    for order, template in clause.items()
                }


def load_clauses() -> ClauseGrammar:
    """Read the grammar of clauses from its data files.

    Raises:
        UserError: a file is malformed; the message names it and the line.
    """
    categories = read_categories(DATA)
    clauses = read_clauses(DATA / "clauses.yaml", categories)
    return ClauseGrammar(
        categories, clauses, read_joins(DATA / "joins.yaml", categories)
    )


def read_clauses(file: Path, categories: Mapping[str, Draw]) -> list[Clause]:
    """Read the clauses and check their slots.

    Raises:
        UserError: a pattern is malformed; the message names the file and the line.
    """
    clauses: list[Clause] = []
    for row in read_records(file, ("en", *WORD_ORDERS)):
        clause = {order: Template(row["en"], row[order]) for order in WORD_ORDERS}
        for order, template in clause.items():
            for fault in faults(template, categories):
                raise row.fault(f"{order}: {fault}")
        clauses.append(clause)
    return clauses


def read_joins(file: Path, categories: Mapping[str, Draw]) -> list[Template]:
    """Read the joins and check their places and slots.

    Raises:
        UserError: a pattern is malformed; the message names the file and the line.
    """
    joins = []
    for row in read_records(file, ("en", "fr")):
        join = Template(row["en"], row["fr"])
        for fault in (*faults_of_join(join), *faults(join, categories)):
            raise row.fault(fault)
        joins.append(join)
    return joins


def faults_of_join(join: Template) -> Iterator[str]:
    """Yield what is wrong with the places of a join."""
    asked, given = PLACE.findall(join.english), PLACE.findall(join.french)
    numbers = [str(number) for number in range(1, len(asked) + 1)]
    in_order = asked == [(number, "") for number in numbers]
    if not in_order or sorted(number for number, _ in given) != numbers:
        yield "both patterns must have the clauses [1], [2], ..., in English in this order"
    for number, order in given:
        if order not in WORD_ORDERS:
            yield f"[{number} {order}]: expected an order out of: {', '.join(WORD_ORDERS)}"


def joined_belongs(sentence: JoinedSentence, split: str, number: int) -> bool:
    """Say whether a sentence may become the one with this number in a split."""
    return belongs(sentence, split, number) and (
        split == "train" or len(sentence.clauses) > 1
    )


def joined_sentences() -> dict[str, list[JoinedSentence]]:
    """Return the corpus of clauses: for each split of ``JOINED_SIZES`` its sentences."""
    return draw_splits(JOINED_SIZES, load_clauses().draw, joined_belongs)
