"""What each named preparation makes of a line, and of words again; also one of the user's own.

What Moses' scripts make of English, German, French and Romanian is in reference/test_text_moses.py.
"""

from pathlib import Path

import pytest

from convs2s.config.corpus import PREPARATIONS, PreparationRecipes
from convs2s.config.extensions import export_extensions
from convs2s.text.preparation import Preparation
from tests.support.refusals import says

TITLE = "L'homme n'est pas M. Dupont, e.g. 5,3."
STANFORD = "the 9 @-@ year @-@ old said &apos; hello &apos; &amp; went"
TOKENIZED = "us-china ties at ##.# % , <unk> ' no ' &amp; \" yes \" | n't [ sic ] -lrb- \u2019 é"
"""A line as Gigaword has them, with more of what Moses would change."""


@pytest.mark.parametrize(
    ("recipe", "line", "words"),
    [
        # A kind of text is tokenized as its language.
        (
            "moses_test fr_title",
            TITLE,
            "L&apos; homme n&apos; est pas M. Dupont , e.g. 5,3 .",
        ),
        # Only Romanian has commas for cedillas.
        ("wmt16 ro", "Ştiţi în „România”", "Știți în &quot; România &quot;"),
        ("wmt16_plain ro", "Ştiţi în „România”", "Stiti in &quot; Romania &quot;"),
        ("wmt16 en", "Ştiţi că", "Ştiţi că"),
        # Stanford's words are Moses' but for the mark of a hyphen.
        ("stanford en", STANFORD.replace("@-@", "##AT##-##AT##"), STANFORD),
        ("moses_test en", "the 9-year-old said ' hello ' & went", STANFORD),
        # The rule of commas of English and Czech.
        ("moses_train cs", 'a," b', "a , &quot; b"),
        ("moses_train de", 'a," b', "a &quot; , b"),
        # Words that come tokenized end at any blank, and hold every other character.
        ("none en_title", TOKENIZED, TOKENIZED),
        ("none en", "\x85a\xa0\u2028<unk>\u3000\t\r\v\f\x1c\x1fb", "a <unk> b"),
        (
            "none en",
            "a\0\x07\u200b\ufeff\u00ad\ue000b",
            "a\0\x07\u200b\ufeff\u00ad\ue000b",
        ),
    ],
)
def test_words_of_a_line(recipe: str, line: str, words: str) -> None:
    assert Preparation(*recipe.split()).prepare(line) == words


@pytest.mark.parametrize("name", PREPARATIONS)
def test_text_of_words(name: str) -> None:
    """What comes tokenized stays; the rest has no entities."""
    words = "l&apos; homme dit : &quot; porte @-@ clés &amp; sacs &quot; ."
    text = words if name == "none" else 'l\'homme dit : "porte-clés & sacs".'
    assert Preparation(name, "fr_title").restore(words) == text


def test_preparations_are_documented(root: Path) -> None:
    page = " ".join((root / "docs/preparation.md").read_text("utf-8").split())
    usual = f"prepares its input as test text** (`{PreparationRecipes().test}` unless"
    says(page, usual, *(f"`{name}`" for name in PREPARATIONS))


OWN = """
class Own:
    def __init__(self, language):
        assert language == "en"

    def prepare(self, line):
        return line.lower()

    def restore(self, words):
        return words.title()

PREPARATIONS = {"own": Own, "made": lambda code: Own(code)}
"""


def test_a_preparation_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    export_extensions(["own.py"], tmp_path)
    for name in ("own", "made"):
        preparation = Preparation(name, "en")
        assert preparation.prepare("Two") == "two"
        assert preparation.restore("two cars") == "Two Cars"
