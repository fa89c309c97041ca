"""The corpus of clauses holds what docs/demo_corpus.md says of it."""

import re
from collections import Counter
from pathlib import Path

import pytest

from convs2s.demo.corpus import read_demo_corpus
from convs2s.errors import UserError
from demo_corpus.clauses import (
    WORD_ORDERS,
    JoinedSentence,
    joined_sentences,
    load_clauses,
    read_clauses,
    read_joins,
)
from demo_corpus.fillers import Filler, Fixed, repeats_a_word
from demo_corpus.notation import Sentence, Template

GRAMMAR = load_clauses()

Pairs = list[tuple[str, str]]


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[JoinedSentence]]:
    return joined_sentences()


@pytest.fixture(scope="module")
def corpus() -> dict[str, Pairs]:
    """The shipped text, which is what the grammar writes (test_main.py)."""
    return read_demo_corpus("clauses_en_fr")


def test_sentences_are_long(corpus: dict[str, Pairs]) -> None:
    for split, fewest in (
        ("train", 25),
        ("valid", 36),
        ("test_filtered", 36),
        ("test_rest", 36),
    ):
        for side in (0, 1):
            words = [len(pair[side].split()) for pair in corpus[split]]
            assert fewest <= sum(words) / len(words) <= fewest + 4


def test_no_sentence_comes_twice_and_each_has_one_translation(
    corpus: dict[str, Pairs],
) -> None:
    sources = [english for pairs in corpus.values() for english, _ in pairs]
    assert len(set(sources)) == len(sources)


def test_tests_have_no_single_clause_and_training_has_them(
    drawn: dict[str, list[JoinedSentence]],
) -> None:
    clauses = {
        split: Counter(len(one.clauses) for one in drawn[split]) for split in drawn
    }
    assert all(
        1 not in clauses[split] for split in ("valid", "test_filtered", "test_rest")
    )
    assert clauses["train"][1] >= 0.45 * len(drawn["train"])


def test_two_fifths_of_the_tests_combine_what_training_does_not(
    drawn: dict[str, list[JoinedSentence]],
) -> None:
    seen = frozenset().union(*(one.combinations() for one in drawn["train"]))
    for split in ("valid", "test_filtered"):
        unseen = [one for one in drawn[split] if one.combinations() - seen]
        assert len(unseen) >= 0.4 * len(drawn[split])


def test_most_long_sentences_say_a_word_again(
    drawn: dict[str, list[JoinedSentence]],
) -> None:
    """So a word's own meaning does not say which of several it is."""
    repeating = [
        one for one in drawn["test_filtered"] if repeats_a_word(fillers_of(one))
    ]
    assert len(repeating) >= 0.6 * len(drawn["test_filtered"])


def fillers_of(sentence: JoinedSentence) -> list[Filler]:
    return [
        filler for one in sentence.clauses for filler in one["main"].fillers.values()
    ]


def test_words_are_few(corpus: dict[str, Pairs]) -> None:
    for side, most in ((0, 150), (1, 250)):
        counts = Counter(
            word
            for pair in corpus["train"]
            for word in re.findall(r"\w+'?", pair[side])
        )
        assert sum(count > 20 for count in counts.values()) <= most


def test_a_clause_has_its_verb_second_first_or_last() -> None:
    clause = GRAMMAR.clauses[2]
    assert [
        re.findall(r"\{agent\?|\{hand|\{agent\.", clause[order].french)
        for order in WORD_ORDERS
    ] == [
        ["{agent.", "{agent?", "{hand"],
        ["{agent?", "{agent.", "{hand"],
        ["{agent.", "{hand", "{agent?"],
    ]


@pytest.mark.parametrize(
    ("english", "french"),
    [
        (r": when .*, .* because ", r" : parce que .*, quand "),
        (r"^[^,]* because [^,]* before ", r" : avant que .*, parce que "),
        (r", but .* when ", r", mais quand .*, "),
        (r": ", r"^Message ((deux|trois) ){10}: "),
        (
            r"^Message two three three three two two ",
            r"^Message trois deux trois trois deux deux ",
        ),
        (
            r": the \w+ wanted to give (?!.*(because|before|but))",
            r"(voulait|voulaient) .* donner",
        ),
        (r"because the \w+ wanted to give ", r"donner (voulait|voulaient)"),
    ],
)
def test_phenomena(corpus: dict[str, Pairs], english: str, french: str) -> None:
    found = [pair for pair in corpus["train"] if re.search(english, pair[0])]
    assert found
    assert all(re.search(french, pair[1]) for pair in found)


def test_a_join_puts_clauses_into_their_orders_each_with_its_own_fillers() -> None:
    clauses = [
        {
            order: Sentence(
                Template("the {job}", f"le {{job}} {order}"), {"job": filler}
            )
            for order in WORD_ORDERS
        }
        for filler in (Fixed("cook", "cuisinier"), Fixed("actor", "acteur"))
    ]
    join = Template("[1] when [2].", "quand [2 last], [1 turned].")
    sentence = JoinedSentence(join, {}, clauses)
    assert sentence.english() == "The cook when the actor."
    assert sentence.french() == "Quand l'acteur last, le cuisinier turned."


@pytest.mark.parametrize(
    ("english", "french", "message"),
    [
        (
            "[1] and [2].",
            "[1 main].",
            "both patterns must have the clauses [1], [2], ...",
        ),
        (
            "[2] and [1].",
            "[1 main] [2 main].",
            "both patterns must have the clauses [1], [2], ...",
        ),
        (
            "[1].",
            "[1 first].",
            "[1 first]: expected an order out of: main, turned, last",
        ),
        ("[1].", "[1].", "[1 ]: expected an order out of: main, turned, last"),
    ],
)
def test_a_malformed_join_is_named(
    tmp_path: Path, english: str, french: str, message: str
) -> None:
    file = tmp_path / "joins.yaml"
    file.write_text(f"some:\n  - en: '{english}'\n    fr: '{french}'\n", "utf-8")
    with pytest.raises(UserError) as caught:
        read_joins(file, GRAMMAR.categories)
    assert str(caught.value).startswith(f"{file}:2: {message}")


def test_a_malformed_clause_is_named_with_its_order(tmp_path: Path) -> None:
    file = tmp_path / "clauses.yaml"
    orders = "".join(f"    {order}: '{{agent.le}}'\n" for order in ("main", "turned"))
    file.write_text(
        f"some:\n  - en: '{{agent.the}}'\n{orders}    last: '{{goods.le}}'\n", "utf-8"
    )
    with pytest.raises(
        UserError, match=r"clauses.yaml:2: last: both patterns must have the same"
    ):
        read_clauses(file, GRAMMAR.categories)
