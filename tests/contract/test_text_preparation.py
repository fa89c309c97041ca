"""What each named preparation makes of a line, and of words again; also one of the user's own.

A text is truecased by a table.

What Moses' scripts make of English, German, French and Romanian is in reference/test_text_moses.py.
"""

from pathlib import Path

from convs2s.config.corpus import PREPARATIONS, PreparationRecipes
from convs2s.config.extensions import export_extensions
from convs2s.text.preparation import Preparation
from convs2s.text.truecase import truecase_file
from tests.support.refusals import rows, says

# A kind of text is tokenized as its language, and Romanian alone has commas for cedillas. The words
# of Stanford are Moses' but for the mark of a hyphen. English and Czech share a rule of commas.
# Words that come tokenized, as in Gigaword, end at any blank, and hold every other character.
WORDS = r"""
moses_test fr_title => L'homme n'est pas. => L&apos; homme n&apos; est pas .
moses_test fr_title => M. Dupont, e.g. 5,3. => M. Dupont , e.g. 5,3 .
wmt16 ro => \u015eti\u0163i \u00een => \u0218ti\u021bi \u00een
wmt16 ro => \u201eRom\u00e2nia\u201d => &quot; Rom\u00e2nia &quot;
wmt16_plain ro => \u015eti\u0163i \u00een => Stiti in
wmt16_plain ro => \u201eRom\u00e2nia\u201d => &quot; Romania &quot;
wmt16 en => \u015eti\u0163i c\u0103 => \u015eti\u0163i c\u0103
stanford en => the 9 ##AT##-##AT## year => the 9 @-@ year
stanford en => old said &apos; hello &apos; &amp; went => old said &apos; hello &apos; &amp; went
moses_test en => the 9-year-old => the 9 @-@ year @-@ old
moses_test en => said ' hello ' & went => said &apos; hello &apos; &amp; went
moses_train cs => a," b => a , &quot; b
moses_train de => a," b => a &quot; , b
none en_title => us-china at ##.# % , <unk> ' no ' => us-china at ##.# % , <unk> ' no '
none en_title => &amp; " yes " | n't [ sic ] => &amp; " yes " | n't [ sic ]
none en_title => -lrb- \u2019 \u00e9 => -lrb- \u2019 \u00e9
none en => \x85a\xa0\u2028<unk>\u3000\t\r\v\f\x1c\x1fb => a <unk> b
none en => a\0\x07\u200b\ufeff\u00ad\ue000b => a\0\x07\u200b\ufeff\u00ad\ue000b
"""


def test_words_of_a_line() -> None:
    for recipe, line, words in rows(WORDS):
        assert Preparation(*recipe.split()).prepare(line) == words


def test_text_of_words() -> None:
    """What comes tokenized stays; the rest has no entities."""
    words = "l&apos; homme dit : &quot; porte @-@ clés &amp; sacs &quot; ."
    text = 'l\'homme dit : "porte-clés & sacs".'
    for name in PREPARATIONS:
        restored = Preparation(name, "fr_title").restore(words)
        assert restored == (words if name == "none" else text)


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


def test_a_text_is_truecased_by_a_table(tmp_path: Path) -> None:
    text, table, output = (tmp_path / name for name in ("text", "table", "output"))
    text.write_text("Rot ist es . Gelb auch ? Blau\n&quot; ( Rot\n\n")
    table.write_text("word\tcount\nauch\t1\nrot\t1\n")
    truecase_file(text=text, truecaser=table, output=output)
    assert output.read_text() == "rot ist es . Gelb auch ? Blau\n&quot; ( rot\n\n"
