"""Named preparations: what they are, that they can be shipped, and each text hazard."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.config.corpus import PREPARATIONS, PreparationRecipes
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.text.corpus_filter import tidy, tokenize_and_filter
from convs2s.text.preparation import Preparation, tokenize_file

MOSES = [name for name in PREPARATIONS if name != "none"]


def prepared(tmp_path: Path, name: str, raw: bytes) -> list[str]:
    """Return the prepared lines of an English file with these bytes."""
    raw_path, words = tmp_path / "raw", tmp_path / "words"
    raw_path.write_bytes(raw)
    tokenize_file(raw=raw_path, output=words, name=name, language="en")
    return list(read_lines(words))


def test_training_text_is_normalized_and_test_text_is_not() -> None:
    line = "“It’s low-cost”, he said… (5 %)"
    train = Preparation("moses_train", "en").prepare(line)
    test = Preparation("moses_test", "en").prepare(line)
    assert train == "&quot; It &apos;s low @-@ cost , &quot; he said ... ( 5 % )"
    assert test == "“ It &apos;s low @-@ cost ” , he said … ( 5 % )"


def test_romanian_gets_commas_for_cedillas_and_keeps_its_diacritics() -> None:
    line = "Ştiţi că ŢARA învaţă să câştige în „România”?"
    english = "Ştiţi că"
    kept, plain = (Preparation(name, "ro").prepare(line) for name in ("wmt16", "wmt16_plain"))
    assert kept == "Știți că ȚARA învață să câștige în &quot; România &quot; ?"
    assert plain == "Stiti ca TARA invata sa castige in &quot; Romania &quot; ?"
    assert (
        Preparation("wmt16", "ro").restore(kept) == 'Știți că ȚARA învață să câștige în "România"?'
    )
    for name in ("wmt16", "wmt16_plain"):
        assert Preparation(name, "en").prepare(english) == english


def test_stanfords_training_text_reads_like_tokenized_test_text() -> None:
    """Its words are Moses' but for the mark of a hyphen."""
    line = "the 9 @-@ year @-@ old said &apos; hello &apos; &amp; went"
    theirs = line.replace("@-@", "##AT##-##AT##")
    assert Preparation("stanford", "en").prepare(theirs) == line
    assert Preparation("moses_test", "en").prepare("the 9-year-old said ' hello ' & went") == line


@pytest.mark.parametrize("name", ["moses_train", "moses_test"])
def test_a_kind_of_text_is_tokenized_as_its_language(name: str) -> None:
    line = "L'homme n'est pas M. Dupont, e.g. 5,3."
    kind, french, english = (Preparation(name, code) for code in ("fr_title", "fr", "en"))
    assert kind.prepare(line) == french.prepare(line) != english.prepare(line)
    words = "l&apos; homme"
    assert kind.restore(words) == french.restore(words) == "l'homme"


TOKENIZED = (
    "us-china ties at ##.# % , <unk> says ' no ' &amp; \" yes \" | n't [ sic ] -lrb- \u2019 é"
)
"""A line as Gigaword has them, with more of what Moses would change."""


def test_text_that_comes_tokenized_stays_as_it_is() -> None:
    preparation = Preparation("none", "en_title")
    assert preparation.prepare(TOKENIZED) == preparation.restore(TOKENIZED) == TOKENIZED


BLANKS = [" ", "  ", "\t", "\r", "\v\f", "\x1c", "\x1f", "\x85", "\u00a0", "\u2028", "\u3000"]


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


def test_the_words_of_none_are_those_of_all_later_steps() -> None:
    """Whatever a line holds, blanks between its words are single spaces."""
    line = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000)]))
    words = Preparation("none", "en").prepare(line)
    assert words.split() == words.split(" ") == tidy(words).split(" ")


def test_bars_stay_in_training_text_that_comes_tokenized(tmp_path: Path) -> None:
    line = "a || b |c| <unk> #"
    for name, kept in {"none": line, "stanford": "a b c <unk> #"}.items():
        write_lines(tmp_path / "raw", [line])
        prepare = Preparation(name, "en").prepare
        tokenize_and_filter(
            raw=(tmp_path / "raw", tmp_path / "raw"),
            sides=(tmp_path / "clean.en", tmp_path / "clean.de"),
            report=tmp_path / "report.json",
            minimum=1,
            maximum=175,
            ratio=None,
            prepare=(prepare, prepare),
        )
        assert list(read_lines(tmp_path / "clean.en")) == [kept]


@pytest.mark.parametrize("name", MOSES)
def test_restore_gives_text_without_entities(name: str) -> None:
    preparation = Preparation(name, "fr")
    words = "l&apos; homme dit : &quot; porte @-@ clés &amp; sacs &quot; ."
    assert preparation.restore(words) == 'l\'homme dit : "porte-clés & sacs".'


def test_comma_rule_of_every_language_but_english_and_czech() -> None:
    line = 'a," b'
    results = {x: Preparation("moses_train", x).prepare(line) for x in ("en", "cs", "de", "ro")}
    assert results["en"] == "a , &quot; b"
    assert results["cs"] == "a , &quot; b"
    assert results["de"] == results["ro"] == "a &quot; , b"


@pytest.mark.parametrize(
    ("name", "answer"),
    [("mose_train", "did you mean 'moses_train'[?]"), ("raw", "expected one of lowercase, ")],
)
def test_unknown_preparation_is_named(name: str, answer: str) -> None:
    message = f"^preparation: unknown preparation '{name}'; {answer}.*docs/extending.md"
    with pytest.raises(UserError, match=message):
        Preparation(name, "en")


@pytest.mark.parametrize("name", PREPARATIONS)
def test_preparation_survives_pickling(name: str) -> None:
    line = "It's a well-known fact, Mr. Smith."
    preparation = Preparation(name, "en")
    assert pickle.loads(pickle.dumps(preparation)).prepare(line) == preparation.prepare(line)


@pytest.mark.parametrize("name", PREPARATIONS)
def test_preparation_is_documented(root: Path, name: str) -> None:
    assert f"`{name}`" in (root / "docs" / "preparation.md").read_text(encoding="utf-8")


def test_the_preparation_of_translate_is_documented(root: Path) -> None:
    page = " ".join((root / "docs" / "preparation.md").read_text(encoding="utf-8").split())
    sentence = "`convs2s translate` prepares its input as test text** (`{}` unless the task says"
    assert sentence.format(PreparationRecipes().test) in page


def test_text_loads_without_torch() -> None:
    modules = (
        "align, bpe, corpus_filter, dictionary, links, moses, normalize, preparation, truecase"
    )
    check = f"import sys; from convs2s.text import {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


# Text hazards in a file that is prepared; test_hazards.py follows them from end to end.


@pytest.mark.parametrize("name", PREPARATIONS)
def test_invalid_utf8_is_an_error_with_file_and_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"raw:2: not UTF-8: byte 0xff at column 3"):
        prepared(tmp_path, name, b"fine\nno\xffgood\n")
    assert not (tmp_path / "words").exists()


BARS = "a &#124; &#124; &#124; b"


@pytest.mark.parametrize(
    ("hazard", "train", "test", "as_it_is"),
    [
        pytest.param(b"a\0b", "a b", "ab", "a\0b", id="NUL"),
        pytest.param(b"a\rb", "ab", "a b", "a b", id="CR inside a line"),
        pytest.param(b"a b\r", "a b", "a b", "a b", id="CRLF"),
        pytest.param("a\u2028b".encode(), "a b", "a b", "a b", id="U+2028"),
        pytest.param("\ufeffa b".encode(), "a b", "a b", "a b", id="byte order mark"),
        pytest.param(b"", "", "", "", id="empty line"),
        pytest.param(b" \t ", "", "", "", id="blank line"),
        pytest.param(b"a ||| b", BARS, BARS, "a ||| b", id="|||"),
    ],
)
def test_hazard_stays_one_line(
    tmp_path: Path, hazard: bytes, train: str, test: str, as_it_is: str
) -> None:
    raw = hazard + b"\nnext\n"
    assert prepared(tmp_path, "moses_train", raw) == [train, "next"]
    assert prepared(tmp_path, "moses_test", raw) == [test, "next"]
    assert prepared(tmp_path, "none", raw) == [as_it_is, "next"]


def test_later_byte_order_mark() -> None:
    assert Preparation("moses_train", "en").prepare("a \ufeff b") == "a b"
    assert Preparation("moses_test", "en").prepare("a \ufeff b") == "a \ufeff b"


@pytest.mark.parametrize(
    ("unit", "reason"),
    [
        ("x", "long_word"),
        # the slow ones would take hours with a rule that is quadratic in a line's length
        pytest.param("word ", "too_long", marks=pytest.mark.slow),
        pytest.param(".", "long_word", marks=pytest.mark.slow),
    ],
)
def test_line_of_10_megabytes_is_prepared_then_dropped(
    tmp_path: Path, unit: str, reason: str
) -> None:
    write_lines(tmp_path / "raw.en", [unit * (10_000_000 // len(unit)), "It's short."])
    tokenize_file(
        raw=tmp_path / "raw.en", output=tmp_path / "tok.en", name="moses_train", language="en"
    )
    write_lines(tmp_path / "tok.de", ["kurz .", "Das ist kurz ."])
    report = tokenize_and_filter(
        raw=(tmp_path / "tok.en", tmp_path / "tok.de"),
        sides=(tmp_path / "clean.en", tmp_path / "clean.de"),
        report=tmp_path / "report.json",
        minimum=1,
        maximum=175,
        ratio=None,
    )
    assert list(read_lines(tmp_path / "clean.en")) == ["It &apos;s short ."]
    assert report["dropped"][reason] == 1
