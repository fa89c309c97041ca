"""The demo corpus holds what docs/demo_corpus.md says of it."""

import re
from collections import Counter

import pytest

from convs2s.demo.corpus import read_demo_corpus
from demo_corpus.agreement import english_surface, french_surface
from demo_corpus.corpus import sentences
from demo_corpus.data_files import DATA
from demo_corpus.grammar import load_grammar
from demo_corpus.names import read_names
from demo_corpus.notation import Sentence

GRAMMAR = load_grammar()
NAMES = read_names(DATA)
RARE_NAMES = {*NAMES.family_names, *NAMES.town_names}

Pairs = list[tuple[str, str]]


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[Sentence]]:
    return sentences()


@pytest.fixture(scope="module")
def corpus() -> dict[str, Pairs]:
    """The shipped text, which is what the grammar writes (test_main.py)."""
    return read_demo_corpus()


def words(sentence: str) -> list[str]:
    """The words without punctuation; an apostrophe ends a word."""
    return re.findall(r"[\w-]+", sentence)


def is_plain(word: str) -> bool:
    return word not in RARE_NAMES and not any(character.isdigit() for character in word)


def test_no_sentence_comes_twice(corpus: dict[str, Pairs]) -> None:
    sources = [english for pairs in corpus.values() for english, _ in pairs]
    assert len(set(sources)) == len(sources)


def test_templates_are_many_and_all_are_used(drawn: dict[str, list[Sentence]]) -> None:
    patterns = {sentence.template.english for sentence in drawn["train"]}
    assert len(patterns) == len(GRAMMAR.templates) >= 60


@pytest.mark.parametrize("side", [0, 1])
def test_vocabulary_and_length(corpus: dict[str, Pairs], side: int) -> None:
    tokens = [words(pair[side]) for pair in corpus["train"]]
    counts = Counter(
        word.lower() for sentence in tokens for word in sentence if is_plain(word)
    )
    assert len(counts) >= 400
    names = sum(word in RARE_NAMES for sentence in tokens for word in sentence)
    assert names <= 0.1 * sum(map(len, tokens))
    assert sum(map(len, tokens)) >= 9 * len(tokens)
    assert sum(len(pair[side].split()) for pair in corpus["train"]) >= 9 * len(tokens)


@pytest.mark.parametrize(("side", "new_forms"), [(0, 0), (1, 3)])
def test_the_common_words_of_the_test_set_are_in_training(
    corpus: dict[str, Pairs], side: int, new_forms: int
) -> None:
    known, asked = (
        {word for pair in corpus[split] for word in words(pair[side]) if is_plain(word)}
        for split in ("train", "test")
    )
    assert len(asked - known) <= new_forms  # French has rare inflected forms


def test_some_words_are_seen_a_few_times_in_training(corpus: dict[str, Pairs]) -> None:
    counts = Counter(
        word for pair in corpus["train"] for word in words(pair[0]) if is_plain(word)
    )
    seldom = {word for word, count in counts.items() if 3 <= count <= 40}
    assert len(seldom) >= 100
    assert sum(bool(seldom & set(words(pair[0]))) for pair in corpus["test"]) >= 50


def test_two_fifths_of_the_test_set_combine_what_training_does_not(
    drawn: dict[str, list[Sentence]],
) -> None:
    seen = frozenset().union(*(sentence.combinations() for sentence in drawn["train"]))
    unseen = [sentence for sentence in drawn["test"] if sentence.combinations() - seen]
    assert len(unseen) >= 0.4 * len(drawn["test"])


def test_rare_names_stand_on_both_sides(corpus: dict[str, Pairs]) -> None:
    counts = Counter(word for pair in corpus["train"] for word in words(pair[0]))
    for english, french in corpus["test"]:
        assert names_of(english) == names_of(french)
    named = [names for english, _ in corpus["test"] if (names := names_of(english))]
    assert len(named) >= 0.25 * len(corpus["test"])
    seldom = [name for names in named for name in names if counts[name] <= 2]
    assert len(seldom) >= 0.9 * sum(map(len, named))


def names_of(sentence: str) -> list[str]:
    """The rare names of a sentence, sorted."""
    return sorted(word for word in re.findall(r"\w+", sentence) if word in RARE_NAMES)


def test_an_english_sentence_has_one_translation(
    drawn: dict[str, list[Sentence]],
) -> None:
    translations: dict[str, set[str]] = {}
    for split in drawn.values():
        for sentence in split:
            translations.setdefault(sentence.english().lower(), set()).add(
                sentence.french()
            )
    assert max(map(len, translations.values())) == 1


def test_sentences_are_typed_as_a_user_types_them(corpus: dict[str, Pairs]) -> None:
    for pairs in corpus.values():
        for side in (0, 1):
            assert not [pair[side] for pair in pairs if not is_well_formed(pair[side])]


def is_well_formed(sentence: str) -> bool:
    """A capital or a digit first, an end mark last, single spaces, no slot left."""
    return (
        (sentence[0].isupper() or sentence[0].isdigit())
        and sentence[-1] in ".?!"
        and not re.search(r"\s\s|[{}|_]", sentence)
    )


@pytest.mark.parametrize(
    ("english", "french"),
    [
        (r"€\d,\d{3}\.\d\d ", r"\d \d{3},\d\d euros"),  # prices
        (r"(May|June) \d+, \d{4}", r"\d+ (mai|juin) \d{4}"),  # dates
        (r"\d:\d\d in the evening", r"\d h \d\d du soir"),  # times
        (r"red cars", r"voitures rouges"),  # adjectives behind the noun
        (r"old (lamps|keys|cars)", r"vieilles (lampes|clés|voitures)"),  # and before it
        (r"\b[Mm]an\b", r"[Ll]'homme"),  # elision
        (r"from the", r"\bdu\b"),  # contraction
        (r"\bto the\b", r"\baux\b"),
        (r"some \w+ water", r"de l'eau"),
        (r"before", r"[Ii]l faut qu'"),
        (r"They|they", r"qu'elles"),
        (r"was born", r"est née "),  # participles agree
    ],
)
def test_phenomena(corpus: dict[str, Pairs], english: str, french: str) -> None:
    found = [pair for pair in corpus["train"] if re.search(english, pair[0])]
    assert any(re.search(french, pair[1]) for pair in found)


@pytest.mark.parametrize(
    ("underlying", "surface"),
    [
        ("le homme voit", "L'homme voit"),
        ("le hibou de le enfant", "Le hibou de l'enfant"),
        ("la horloge de les haricots", "L'horloge des haricots"),
        ("près de le marché", "Près du marché"),
        ("près de le hôtel", "Près de l'hôtel"),
        ("jusqu'à le pont", "Jusqu'au pont"),
        ("de le docteur à les amis", "Du docteur aux amis"),
        ("il faut que Anna aille à Elobik", "Il faut qu'Anna aille à Elobik"),
        ("le village de Igamont", "Le village d'Igamont"),
        ("Paul ne oublie pas le 8 mai", "Paul n'oublie pas le 8 mai"),
        ("du yaourt et de le yaourt", "Du yaourt et du yaourt"),
    ],
)
def test_french_surface(underlying: str, surface: str) -> None:
    assert french_surface(underlying) == surface


@pytest.mark.parametrize(
    ("underlying", "surface"),
    [
        ("a old umbrella", "An old umbrella"),
        ("it is a umbrella", "It is an umbrella"),
        ("it is a useful uniform", "It is a useful uniform"),
        ("it is a hot soup", "It is a hot soup"),
    ],
)
def test_english_surface(underlying: str, surface: str) -> None:
    assert english_surface(underlying) == surface
