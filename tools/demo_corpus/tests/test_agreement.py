"""Agreement in the demo corpus: the README's example and more like it, phrase by phrase."""

import pytest

from demo_corpus.agreement import english_ing, french_plural, with_s
from demo_corpus.data_files import DATA
from demo_corpus.fillers import Action, Fixed, NounPhrase, Quality
from demo_corpus.notation import Sentence, Template
from demo_corpus.words import Adjective, Noun, Verb, read_adjectives, read_word_lists

TWO = ("two", "deux")
LISTS = read_word_lists(DATA)
NOUNS = {noun.english: noun for nouns in LISTS.nouns.values() for noun in nouns.common}
VERBS = {verb.english: verb for verbs in LISTS.verbs.values() for verb in verbs.common}
ADJECTIVES = read_adjectives(DATA / "adjectives.tsv")


def noun(english: str) -> Noun:
    return NOUNS[english]


def verb(english: str) -> Verb:
    return VERBS[english]


def pick(names: str) -> list[Adjective]:
    return [ADJECTIVES[name] for name in names.split()]


def test_the_example_of_the_readme() -> None:
    template = Template(
        "{person.the} {see.present person} {thing.a}.",
        "{person.le} {see.present person} {thing.un}.",
    )
    sentence = Sentence(
        template,
        {
            "person": NounPhrase(noun("man")),
            "see": Action(verb("see")),
            "thing": NounPhrase(
                noun("car"), tuple(pick("red")), plural=True, count=TWO
            ),
        },
    )
    assert sentence.english() == "The man sees two red cars."
    assert sentence.french() == "L'homme voit deux voitures rouges."


@pytest.mark.parametrize(
    ("phrase", "english", "french"),
    [
        (NounPhrase(noun("car"), tuple(pick("red"))), "a red car", "une voiture rouge"),
        (NounPhrase(noun("man"), tuple(pick("old"))), "a old man", "un vieil homme"),
        (
            NounPhrase(noun("hotel"), tuple(pick("new"))),
            "a new hotel",
            "un nouvel hôtel",
        ),
        (
            NounPhrase(noun("car"), tuple(pick("old red")), plural=True),
            "some old red cars",
            "de vieilles voitures rouges",
        ),
        (
            NounPhrase(noun("book"), tuple(pick("brown")), plural=True),
            "some brown books",
            "des livres marron",
        ),
        (NounPhrase(noun("water"), mass=True), "some water", "de la eau"),
    ],
)
def test_indefinite_phrases(phrase: NounPhrase, english: str, french: str) -> None:
    assert (phrase.english("a", None), phrase.french("un", None)) == (english, french)


@pytest.mark.parametrize(
    ("owner", "english", "french"),
    [
        (NounPhrase(noun("man")), "his clock", "son horloge"),
        (NounPhrase(noun("woman")), "her clock", "son horloge"),
        (NounPhrase(noun("girl"), plural=True), "their clock", "leur horloge"),
        (Fixed("Mrs. Alolen", "Mme Alolen", "f"), "her clock", "son horloge"),
    ],
)
def test_possessives(owner: NounPhrase | Fixed, english: str, french: str) -> None:
    clock = NounPhrase(noun("clock"))
    assert (clock.english("its", owner), clock.french("son", owner)) == (
        english,
        french,
    )


def test_demonstratives_look_at_the_next_word() -> None:
    assert NounPhrase(noun("man")).french("ce", None) == "cet homme"
    assert (
        NounPhrase(noun("man"), tuple(pick("young"))).french("ce", None)
        == "ce jeune homme"
    )
    assert NounPhrase(noun("key")).french("ce", None) == "cette clé"
    assert NounPhrase(noun("key"), plural=True).french("ce", None) == "ces clés"


def test_verbs_agree_with_their_subject() -> None:
    women = NounPhrase(noun("woman"), plural=True, count=TWO)
    arrive, find = Action(verb("arrive in")), Action(verb("find"))
    assert arrive.french("past", women) == "sont arrivées"
    assert find.french("past", women) == "ont trouvé"
    assert find.french("future", women) == "trouveront"
    assert (find.english("present", women), find.english("present", None)) == (
        "find",
        "finds",
    )
    assert Action(verb("look for")).english("present", None) == "looks for"
    assert Action(verb("look for")).english("past", None) == "looked for"


def test_adjectives_agree_with_their_noun() -> None:
    heavy = Quality(pick("heavy")[0])
    assert heavy.french("", NounPhrase(noun("key"), plural=True)) == "lourdes"
    assert heavy.french("", None) == "lourd"


def test_regular_plurals() -> None:
    words = ("bleu", "beau", "cheval", "vieux", "clé")
    assert [french_plural(word) for word in words] == [
        "bleus",
        "beaux",
        "chevaux",
        "vieux",
        "clés",
    ]


def test_a_possessive_without_an_owner_is_a_fault_of_the_template() -> None:
    with pytest.raises(ValueError, match="needs its owner"):
        NounPhrase(noun("key")).english("its", None)


@pytest.mark.parametrize(
    ("verb", "present", "ing"),
    [
        ("play", "plays", "playing"),
        ("go", "goes", "going"),
        ("dance", "dances", "dancing"),
    ],
)
def test_english_verb_forms(verb: str, present: str, ing: str) -> None:
    assert (with_s(verb), english_ing(verb)) == (present, ing)
