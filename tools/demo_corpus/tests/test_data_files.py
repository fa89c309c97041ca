"""The data files of the demo: how they are read, and what is said of a malformed line."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.errors import UserError
from demo_corpus.data_files import DATA, read_records, read_table
from demo_corpus.grammar import load_grammar
from demo_corpus.words import WordSet

Edit = Callable[[str, str, str], tuple[Path, int]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the data files, to be spoilt."""
    for file in DATA.iterdir():
        shutil.copy(str(file), tmp_path)
    return tmp_path


@pytest.fixture
def edit(data: Path) -> Edit:
    """Replaces the line that opens with some text; returns its file and number."""

    def replace(name: str, opening: str, line: str) -> tuple[Path, int]:
        lines = (data / name).read_text("utf-8").split("\n")
        number = next(
            at for at, old in enumerate(lines) if old.lstrip().startswith(opening)
        )
        lines[number] = line
        (data / name).write_text("\n".join(lines), "utf-8")
        return data / name, number + 1

    return replace


@pytest.mark.parametrize(
    ("name", "opening", "line", "message"),
    [
        (
            "nouns.tsv",
            "set\t",
            "set\tenglish",
            "expected the columns set, frequency, english",
        ),
        ("nouns.tsv", "people\tcommon\tman", "people\tcommon\tman", "french is empty"),
        (
            "nouns.tsv",
            "people\tcommon\tman",
            "people\toften\tman\thomme\tm",
            "common, rare",
        ),
        (
            "nouns.tsv",
            "people\tcommon\tman",
            "people\tcommon\tman\thomme\tx",
            "m, f, mp, fp",
        ),
        (
            "nouns.tsv",
            "people\tcommon\tman",
            "new\trare\tman\thomme\tm",
            "must come first",
        ),
        (
            "nouns.tsv",
            "people\tcommon\twoman",
            "people\tcommon\tman\tH\tm",
            "'man' comes twice",
        ),
        (
            "nouns.tsv",
            "people\tcommon\tman",
            "people" + "\t" * 7,
            "8 cells; expected at most 7",
        ),
        ("adjectives.tsv", "big", "big\tabove\tgrand", "before, behind, invariable"),
        ("adjectives.tsv", "small", "big\tbefore\tgrand", "'big' comes twice"),
        ("adjective_sets.tsv", "colors", "colors\tred mauve", "no adjective 'mauve'"),
        (
            "adjective_sets.tsv",
            "of_things",
            "colors\tred",
            "the set 'colors' comes twice",
        ),
        ("verbs.tsv", "see", "see\tcommon\tsee\tvoir\tavere", "avoir, être"),
        ("expressions.tsv", "past", "past\tcommon\tyesterday", "french is empty"),
        ("rare_names.tsv", "openings", "beginnings\tBa", "openings, syllables"),
        ("first_names.tsv", "Anna", "Anna\tx", "gender is 'x'"),
        ("titles.tsv", "Mr.", "Mr.\tM.\tx", "gender is 'x'"),
        (
            "categories.tsv",
            "adult",
            "adult\tadverb\tpeople",
            "noun, adjective, verb, expression",
        ),
        (
            "categories.tsv",
            "adult",
            "adult\tnoun\tpeople gods",
            "no set of nouns 'gods'",
        ),
        (
            "categories.tsv",
            "adult",
            "adult\tnoun\tpeople\told",
            "no set of adjectives 'old'",
        ),
        (
            "categories.tsv",
            "adult",
            "adult\tnoun\tpeople\t\tdual",
            "numbers has 'dual'",
        ),
        (
            "categories.tsv",
            "see",
            "see\tverb\tsee\tcolors",
            "only a category filled by noun",
        ),
        (
            "categories.tsv",
            "child",
            "adult\tnoun\tpeople",
            "the category 'adult' comes twice",
        ),
        (
            "categories.tsv",
            "adult",
            "price\tnoun\tpeople",
            "the category 'price' comes twice",
        ),
        (
            "templates.yaml",
            "things:",
            "things: 5\nmore:",
            "expected a list below this topic",
        ),
        (
            "templates.yaml",
            "- en:",
            "  - english: X",
            "expected a text for each of: en, fr",
        ),
        (
            "templates.yaml",
            "- en:",
            "  - en: [X]",
            "expected a text for each of: en, fr",
        ),
        (
            "templates.yaml",
            "- en:",
            "  - en: X",
            "both patterns must have the same slots",
        ),
    ],
)
def test_a_malformed_line_is_named(
    data: Path, edit: Edit, name: str, opening: str, line: str, message: str
) -> None:
    file, number = edit(name, opening, line)
    with pytest.raises(UserError) as raised:
        load_grammar(data)
    assert str(raised.value).startswith(f"{file}:{number}: ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("english", "french", "message"),
    [
        ("{god.the} sees.", "{god.le} voit.", "there is no category 'god'"),
        ("{thing.the.", "{thing.le}.", "same slots"),
        ("{thing.the} {{.", "{thing.le}.", "a brace is left over"),
        ("{thing.its person}.", "{thing.le}.", "refers to 'person', which is no slot"),
        ("{thing?is}.", "{thing.le}.", "neither two texts nor four"),
    ],
)
def test_a_malformed_pattern_is_named(
    data: Path, english: str, french: str, message: str
) -> None:
    file = data / "templates.yaml"
    file.write_text(f'new:\n  - en: "{english}"\n    fr: "{french}"\n', "utf-8")
    with pytest.raises(UserError) as raised:
        load_grammar(data)
    assert str(raised.value).startswith(f"{file}:2: ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "opening", "message"),
    [
        ("rare_names.tsv", "town_endings", "the part 'town_endings' is missing"),
        ("categories.tsv", "child", "the category 'child' is missing"),
    ],
)
def test_an_entry_that_the_engine_asks_for_is_missed(
    data: Path, edit: Edit, name: str, opening: str, message: str
) -> None:
    file, _ = edit(name, opening, "")
    with pytest.raises(UserError) as raised:
        load_grammar(data)
    assert str(raised.value) == f"{file}: {message}"


def test_tables_pass_over_comments_and_empty_lines(tmp_path: Path) -> None:
    file = tmp_path / "table.tsv"
    file.write_text(
        "# A remark.\n\nname\tgender\tnote\n\nAnna\tf\n# Another.\nPaul\tm\tx\n",
        "utf-8",
    )
    rows = list(read_table(file, "name gender", "note"))
    assert [row.place for row in rows] == [f"{file}:5", f"{file}:7"]
    assert [(row["name"], row["note"]) for row in rows] == [("Anna", ""), ("Paul", "x")]


def test_a_table_without_a_header_and_text_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "table.tsv"
    file.write_bytes(b"# Nothing else.\n")
    with pytest.raises(UserError, match=r"table\.tsv: expected the columns name"):
        list(read_table(file, "name"))
    file.write_bytes(b"name\n\xe9t\xe9\n")
    with pytest.raises(UserError, match=r"table\.tsv:2: not UTF-8"):
        list(read_table(file, "name"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n  - b: c\n  d: [\n", r"records\.yaml:\d+: not YAML: "),
        ("- a\n", r"records\.yaml: expected a mapping of topics to lists"),
        ("", r"records\.yaml: expected a mapping of topics to lists"),
        (
            "a:\n  - b: c\n  - b: c\n    b: c\n",
            r"records\.yaml:3: expected a text for each of: b",
        ),
    ],
)
def test_records_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "records.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(UserError, match=message):
        list(read_records(file, ["b"]))


def test_the_first_words_of_a_set_are_drawn_most_often_and_rare_ones_seldom() -> None:
    rng = random.Random(1)
    words = WordSet(["first", "second"], ["rare"]) + WordSet(["last"])
    drawn = [words.draw(rng) for _ in range(3000)]
    counts = [drawn.count(word) for word in ("first", "second", "last", "rare")]
    assert counts == sorted(counts, reverse=True)
    assert 0 < counts[-1] < 0.15 * len(drawn)
