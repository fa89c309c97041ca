"""Named preparations: what they are, that they can be shipped, and each text hazard."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.corpus import PREPARATIONS, PreparationRecipes
from convs2s.errors import UserError
from convs2s.files.text import read_line_pairs, read_lines, write_lines
from convs2s.text.corpus_filter import FilterReport, tidy, tokenize_and_filter
from convs2s.text.preparation import Preparation, tokenize_file

MOSES = [name for name in PREPARATIONS if name != "none"]


def prepared(tmp_path: Path, name: str, raw: bytes) -> list[str]:
    """Return the prepared lines of an English file with these bytes."""
    raw_path, words = tmp_path / "raw", tmp_path / "words"
    raw_path.write_bytes(raw)
    tokenize_file(raw=raw_path, output=words, name=name, language="en")
    return list(read_lines(words))


def cleaned(folder: Path, source: str, target: str, **options: Any) -> FilterReport:
    """Filter two files of a folder to its clean.en and clean.de."""
    return tokenize_and_filter(
        read_line_pairs(folder / source, folder / target),
        sides=(folder / "clean.en", folder / "clean.de"),
        report=folder / "report.json",
        **{"minimum": 1, "maximum": 175, "ratio": None, **options},
    )


def test_training_text_is_normalized_and_test_text_is_not() -> None:
    line = "“It’s low-cost”, he said… (5 %)"
    train = Preparation("moses_train", "en").prepare(line)
    test = Preparation("moses_test", "en").prepare(line)
    assert train == "&quot; It &apos;s low @-@ cost , &quot; he said ... ( 5 % )"
    assert test == "“ It &apos;s low @-@ cost ” , he said … ( 5 % )"


def test_romanian_gets_commas_for_cedillas_and_keeps_its_diacritics() -> None:
    line = "Ştiţi că ŢARA învaţă să câştige în „România”?"
    english = "Ştiţi că"
    kept, plain = (
        Preparation(name, "ro").prepare(line) for name in ("wmt16", "wmt16_plain")
    )
    assert kept == "Știți că ȚARA învață să câștige în &quot; România &quot; ?"
    assert plain == "Stiti ca TARA invata sa castige in &quot; Romania &quot; ?"
    assert (
        Preparation("wmt16", "ro").restore(kept)
        == 'Știți că ȚARA învață să câștige în "România"?'
    )
    for name in ("wmt16", "wmt16_plain"):
        assert Preparation(name, "en").prepare(english) == english


def test_stanfords_training_text_reads_like_tokenized_test_text() -> None:
    """Its words are Moses' but for the mark of a hyphen."""
    line = "the 9 @-@ year @-@ old said &apos; hello &apos; &amp; went"
    theirs = line.replace("@-@", "##AT##-##AT##")
    assert Preparation("stanford", "en").prepare(theirs) == line
    assert (
        Preparation("moses_test", "en").prepare("the 9-year-old said ' hello ' & went")
        == line
    )


@pytest.mark.parametrize("name", ["moses_train", "moses_test"])
def test_a_kind_of_text_is_tokenized_as_its_language(name: str) -> None:
    line = "L'homme n'est pas M. Dupont, e.g. 5,3."
    kind, french, english = (
        Preparation(name, code) for code in ("fr_title", "fr", "en")
    )
    assert kind.prepare(line) == french.prepare(line) != english.prepare(line)
    words = "l&apos; homme"
    assert kind.restore(words) == french.restore(words) == "l'homme"


TOKENIZED = "us-china ties at ##.# % , <unk> ' no ' &amp; \" yes \" | n't [ sic ] -lrb- \u2019 é"
"""A line as Gigaword has them, with more of what Moses would change."""


def test_text_that_comes_tokenized_stays_as_it_is() -> None:
    preparation = Preparation("none", "en_title")
    assert preparation.prepare(TOKENIZED) == preparation.restore(TOKENIZED) == TOKENIZED


BLANKS = [
    " ",
    "  ",
    "\t",
    "\r",
    "\v\f",
    "\x1c",
    "\x1f",
    "\x85",
    "\u00a0",
    "\u2028",
    "\u3000",
]


@pytest.mark.parametrize("blank", BLANKS, ids=ascii)
def test_words_that_come_tokenized_end_at_any_blank(blank: str) -> None:
    preparation = Preparation("none", "en")
    for step in (preparation.prepare, preparation.restore):
        assert step(f"{blank}a{blank}<unk>{blank}") == "a <unk>"
        assert step(blank) == ""


@pytest.mark.parametrize(
    "character", ["\0", "\x07", "\u200b", "\ufeff", "\u00ad", "\ue000"], ids=ascii
)
def test_words_that_come_tokenized_keep_every_other_character(character: str) -> None:
    assert (
        Preparation("none", "en").prepare(f"a{character}b {character}")
        == f"a{character}b {character}"
    )


@pytest.mark.parametrize("name", ["none", "stanford"])
def test_the_words_are_those_of_all_later_steps(name: str) -> None:
    """Whatever a line holds, blanks between its words are single spaces."""
    line = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000)]))
    words = Preparation(name, "en").prepare(line)
    assert words.split() == words.split(" ") == tidy(words).split(" ")


def test_bars_stay_in_training_text_that_comes_tokenized(tmp_path: Path) -> None:
    line = "a || b |c| <unk> #"
    for name, kept in {"none": line, "stanford": "a b c <unk> #"}.items():
        write_lines(tmp_path / "raw", [line])
        cleaned(tmp_path, "raw", "raw", prepare=(Preparation(name, "en").prepare,) * 2)
        assert list(read_lines(tmp_path / "clean.en")) == [kept]


@pytest.mark.parametrize("name", MOSES)
def test_restore_gives_text_without_entities(name: str) -> None:
    preparation = Preparation(name, "fr")
    words = "l&apos; homme dit : &quot; porte @-@ clés &amp; sacs &quot; ."
    assert preparation.restore(words) == 'l\'homme dit : "porte-clés & sacs".'


def test_comma_rule_of_every_language_but_english_and_czech() -> None:
    line = 'a," b'
    results = {
        x: Preparation("moses_train", x).prepare(line) for x in ("en", "cs", "de", "ro")
    }
    assert results["en"] == "a , &quot; b"
    assert results["cs"] == "a , &quot; b"
    assert results["de"] == results["ro"] == "a &quot; , b"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("mose_train", "did you mean 'moses_train'[?]"),
        ("raw", "expected one of lowercase, "),
    ],
)
def test_unknown_preparation_is_named(name: str, answer: str) -> None:
    message = f"^preparation: unknown preparation '{name}'; {answer}.*docs/extending.md"
    with pytest.raises(UserError, match=message):
        Preparation(name, "en")


@pytest.mark.parametrize("name", PREPARATIONS)
def test_preparation_survives_pickling(name: str) -> None:
    line = "It's a well-known fact, Mr. Smith."
    preparation = Preparation(name, "en")
    assert pickle.loads(pickle.dumps(preparation)).prepare(line) == preparation.prepare(
        line
    )


@pytest.mark.parametrize("name", PREPARATIONS)
def test_preparation_is_documented(root: Path, name: str) -> None:
    assert f"`{name}`" in (root / "docs" / "preparation.md").read_text(encoding="utf-8")


def test_the_preparation_of_translate_is_documented(root: Path) -> None:
    page = " ".join(
        (root / "docs" / "preparation.md").read_text(encoding="utf-8").split()
    )
    sentence = "`convs2s translate` prepares its input as test text** (`{}` unless the task says"
    assert sentence.format(PreparationRecipes().test) in page


# Text hazards in a file that is prepared; test_hazards.py follows them from end to end.


def test_invalid_utf8_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"raw:2: not UTF-8: byte 0xff at column 3"):
        prepared(tmp_path, "none", b"fine\nno\xffgood\n")
    assert not (tmp_path / "words").exists()


def test_text_that_comes_tokenized_keeps_its_lines(tmp_path: Path) -> None:
    raw = "\ufeffa b\na\0b\na\rb\na b\r\na\u2028b\n\n \t \na ||| b\n"
    lines = ["a b", "a\0b", "a b", "a b", "a b", "", "", "a ||| b"]
    assert prepared(tmp_path, "none", raw.encode()) == lines


@pytest.mark.parametrize(
    ("unit", "length", "reason"),
    [
        ("x", 2_000_000, "long_word"),
        # the slow ones would take hours with a rule that is quadratic in a line's length
        pytest.param("word ", 10_000_000, "too_long", marks=pytest.mark.slow),
        pytest.param(".", 10_000_000, "long_word", marks=pytest.mark.slow),
    ],
)
def test_a_line_of_megabytes_is_prepared_then_dropped(
    tmp_path: Path, unit: str, length: int, reason: str
) -> None:
    write_lines(tmp_path / "raw.en", [unit * (length // len(unit)), "It's short."])
    tokenize_file(
        raw=tmp_path / "raw.en",
        output=tmp_path / "tok.en",
        name="moses_train",
        language="en",
    )
    write_lines(tmp_path / "tok.de", ["kurz .", "Das ist kurz ."])
    report = cleaned(tmp_path, "tok.en", "tok.de")
    assert list(read_lines(tmp_path / "clean.en")) == ["It &apos;s short ."]
    dropped = dict[str, int](report["dropped"].items())
    assert dropped[reason] == 1
