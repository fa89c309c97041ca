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

from demo_corpus.categories import Draw, read_categories
from demo_corpus.corpus import SEED, Drawing, is_composed, must_be_composed
from demo_corpus.data_files import DATA, read_records
from demo_corpus.fillers import Filler
from demo_corpus.grammar import faults
from demo_corpus.notation import SLOT, Sentence, Template, category_of

JOINED_SIZES = {"test_filtered": 250, "test_rest": 50, "valid": 250, "train": 8_000}
CLAUSES = (1, 1, 1, 2, 2, 3)
"""How many clauses training sentences have; in validation and test there are no single ones."""

WORD_ORDERS = ("main", "turned", "last")
PLACE = re.compile(r"\[(\d)(?: (\w+))?\]")


@dataclass(frozen=True)
class Clause:
    """A clause: its English pattern, and its French ones by order."""

    english: str
    french: Mapping[str, str]

    def template(self, order: str = "main") -> Template:
        """Return the clause as a template, its French in one of the orders."""
        return Template(self.english, self.french[order])

    def numbered(self, number: int) -> "Clause":
        """Return the clause with a number behind each of its slots, which sets them apart."""
        french = {order: with_number(text, number) for order, text in self.french.items()}
        return Clause(with_number(self.english, number), french)


def with_number(pattern: str, number: int) -> str:
    """Put a number behind every name of a slot in a pattern."""

    def renamed(match: re.Match[str]) -> str:
        """Return a slot with the number behind its name and behind the slot it refers to."""
        slot, form, other, variants = match.groups()
        return "".join(
            (
                f"{{{slot}{number}",
                f".{form}" if form else "",
                f" {other}{number}" if other else "",
                "" if variants is None else f"?{variants}",
                "}",
            )
        )

    return SLOT.sub(renamed, pattern)


@dataclass(frozen=True)
class Join:
    """How clauses make a sentence: two patterns with places for them."""

    english: str
    french: str

    @property
    def size(self) -> int:
        """The number of its clauses."""
        return len(PLACE.findall(self.english))

    @property
    def frame(self) -> Template:
        """The sentence without its clauses."""
        return Template(PLACE.sub("", self.english), PLACE.sub("", self.french))

    def template(self, clauses: Sequence[Clause]) -> Template:
        """Return the template of a whole sentence."""
        numbered = [clause.numbered(number) for number, clause in enumerate(clauses, start=1)]

        def french(match: re.Match[str]) -> str:
            return numbered[int(match[1]) - 1].french[match[2]]

        english = PLACE.sub(lambda match: numbered[int(match[1]) - 1].english, self.english)
        return Template(english, PLACE.sub(french, self.french))


@dataclass(frozen=True)
class ClauseGrammar:
    """What sentences of clauses are drawn from."""

    categories: Mapping[str, Draw]
    clauses: Sequence[Clause]
    joins: Sequence[Join]

    def draw(self, rng: random.Random) -> "JoinedSentence":
        """Draw a sentence: a join, its clauses, and a filler for each of their slots."""
        size = rng.choice(CLAUSES)
        join = rng.choice([join for join in self.joins if join.size == size])
        parts = []
        for _ in range(join.size):
            clause = rng.choice(self.clauses)
            parts.append((clause, self._filled(clause.template(), rng)))
        return JoinedSentence(join, self._filled(join.frame, rng).fillers, parts)

    def _filled(self, template: Template, rng: random.Random) -> Sentence:
        """Fill a clause, with no word twice in it."""
        while True:
            fillers = {slot: self.categories[category_of(slot)](rng) for slot in template.slots}
            sentence = Sentence(template, fillers)
            if not sentence.repeats_a_word():
                return sentence


@dataclass(frozen=True)
class JoinedSentence:
    """A join with its clauses, each filled."""

    join: Join
    own: Mapping[str, Filler]
    """What the join itself holds."""
    parts: Sequence[tuple[Clause, Sentence]]

    def whole(self) -> Sentence:
        """Return the sentence with all of its slots filled."""
        fillers = dict(self.own) | {
            f"{slot}{number}": filler
            for number, (_, part) in enumerate(self.parts, start=1)
            for slot, filler in part.fillers.items()
        }
        return Sentence(self.join.template([clause for clause, _ in self.parts]), fillers)

    def is_composed(self) -> bool:
        """Say whether a clause holds a combination that training does not show."""
        return any(is_composed(part) for _, part in self.parts)


def load_clauses() -> ClauseGrammar:
    """Read the grammar of clauses from its data files.

    Raises:
        UserError: a file is malformed; the message names it and the line.
    """
    categories = read_categories(DATA)
    clauses = read_clauses(DATA / "clauses.yaml", categories)
    return ClauseGrammar(categories, clauses, read_joins(DATA / "joins.yaml", categories))


def read_clauses(file: Path, categories: Mapping[str, Draw]) -> list[Clause]:
    """Read the clauses and check their slots.

    Raises:
        UserError: a pattern is malformed; the message names the file and the line.
    """
    clauses = []
    for row in read_records(file, ("en", *WORD_ORDERS)):
        clause = Clause(row["en"], {order: row[order] for order in WORD_ORDERS})
        for order in WORD_ORDERS:
            for fault in faults(clause.template(order), categories):
                raise row.fault(f"{order}: {fault}")
        clauses.append(clause)
    return clauses


def read_joins(file: Path, categories: Mapping[str, Draw]) -> list[Join]:
    """Read the joins and check their places and slots.

    Raises:
        UserError: a pattern is malformed; the message names the file and the line.
    """
    joins = []
    for row in read_records(file, ("en", "fr")):
        join = Join(row["en"], row["fr"])
        for fault in (*faults_of_join(join), *faults(join.frame, categories)):
            raise row.fault(fault)
        joins.append(join)
    return joins


def faults_of_join(join: Join) -> Iterator[str]:
    """Yield what is wrong with a pair of patterns over clauses."""
    asked, given = PLACE.findall(join.english), PLACE.findall(join.french)
    numbers = [str(number) for number in range(1, len(asked) + 1)]
    if [number for number, _ in asked] != numbers or sorted(one for one, _ in given) != numbers:
        yield "both patterns must have the clauses [1], [2], ..., in English in this order"
    for number, order in given:
        if order not in WORD_ORDERS:
            yield f"[{number} {order}]: expected an order out of: {', '.join(WORD_ORDERS)}"


def belongs(sentence: JoinedSentence, split: str, number: int) -> bool:
    """Say whether a sentence may become the one with this number in a split."""
    if split == "train":
        return not sentence.is_composed()
    return sentence.join.size > 1 and (sentence.is_composed() or not must_be_composed(number))


def joined_sentences(grammar: ClauseGrammar) -> dict[str, list[JoinedSentence]]:
    """Return the sentences of each split; no two of them have the same English text."""
    drawing = Drawing(SEED, grammar.draw, lambda one: one.whole().english(), belongs)
    return drawing.splits(JOINED_SIZES)


def generate_clauses() -> dict[str, list[tuple[str, str]]]:
    """Return the corpus: for each split of ``JOINED_SIZES``, the pairs (English, French)."""
    wholes = {
        split: [sentence.whole() for sentence in drawn]
        for split, drawn in joined_sentences(load_clauses()).items()
    }
    return {
        split: [(sentence.english(), sentence.french()) for sentence in drawn]
        for split, drawn in wholes.items()
    }
