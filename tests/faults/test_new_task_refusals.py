"""Files of a user's own that are no pairs of sentences: what ``convs2s new-task`` says of them."""

import gzip
import zipfile
from pathlib import Path

import pytest

from convs2s.config.corpus import Languages
from convs2s.data.pair_files import Reading, read_files
from tests.conftest import Terminal
from tests.support.refusals import refuses, rows, says

READING = Reading(Languages(source="en", target="ro"))


def read(*files: object) -> list[tuple[str, str]]:
    return [*read_files([str(file) for file in files], READING)]


FILES = r"""
a.tsv => a\tb\nc\n => a.tsv:2: has no tab ... name both
a.tsv => a\tb\nc\td\te\n => a.tsv:2: expected 2 cells, as in the first row, not 3
a.tsv => a\tb\tc\n => a.tsv: its first row has 3 cells ... --columns 1 2; it has: 'a', 'b'
a.tsv => en\tEN-us\tro\n => first row has 3 cells
a.tsv => e\0n\0\t\0r\0 => pair 1 has a NUL character ... iconv -f UTF-16LE
a.csv => a,b\n"c,d\ne,f\n => a.csv:2: not a row of a table: ... written twice
a.csv => a,b\n"c" d,e\n => a.csv:2: not a row
a.csv => a,b\nc, d,e\nf,g => a.csv: cannot be told apart into columns ... such as en,ro
a.csv => en,ro\nc, d,e\nf,g => a.csv:2: expected 2 cells, as in the first row, not 3
a.csv => a\nb\n => cannot be told apart
a.jsonl => {"en": "a"}\n => a.jsonl:1: expected the keys en and ro ... there are: en
a.jsonl => {"en": "a", "ro": 1}\n => a.jsonl:1: 'ro' is not a text
a.jsonl => {"translation": {"en": "a", "fr": "b"}} => a.jsonl:1: expected the keys ... en, fr
a.json => [{"en": "a", "ro": "b"}] => a.json:1: a JSON list ... jq
a.jsonl => {"en": "a", "ro": "b"}\n{ => a.jsonl:2: not JSON
a.jsonl => {"en": "a", "ro": "\\ud83d"} => pair 1 has half of a character
a.tmx => <tmx><tu><tuv xml:lang="en-US"><seg>a</seg></tuv></tu></tmx> => both en and ro; ... en-US
a.tmx => <tmx><tu><tuv xml:lang="en"><seg>a</tuv> => a.tmx:1: not well-formed XML: mismatched tag
a.tmx => a\tb => a.tmx:1: not well-formed XML
a.tmx => <!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a> => a.tmx:1: refused: it declares an entity
a.tmx => <?xml version="1.0" encoding="cp1250"?><a/> => states the encoding cp1250, which ... iconv
a.xml => <doc><src lang="de"/></doc> => a.xml: no reference from en to ro; it has: src de
a.parquet => a => a.parquet: not a Parquet file
a.parquet.gz => a => Parquet is not read from within other files
a.en => a\tb\nc => a.en:2: has no tab
a.zip => PK => a.zip: truncated or damaged
"""


REFERENCES = (
    '<doc><src lang="en"><seg id="1">a</seg></src><ref lang="ro" translator="A"/>'
    '<ref lang="ro" translator="B"/></doc>'
)
BYTES = [
    ("a.xml", REFERENCES.encode(), "translators A, B: choose one by --reference"),
    (
        "a.tsv",
        "He left.\r\n\r\n".encode("utf-16"),
        "a.tsv:1: not UTF-8 ... mark is that of UTF-16",
    ),
    (
        "a.tsv",
        "a\tb\nThe\tŞtiinţa\n".encode("cp1250"),
        "a.tsv:2: not UTF-8 ... WINDOWS-1250 'Ştiinţa' ... ISO-8859-16 'Știința'",
    ),
    (
        "a.tmx",
        "<tmx>\n<seg>Ştiinţa</seg></tmx>".encode("cp1250"),
        "a.tmx:2: ... not UTF-8 ... ISO-8859-16",
    ),
    ("a.tsv", b"a\t" + b"b" * (1 << 20), "a.tsv:1: a line of more than"),
    ("a.csv", b'a,b\n"' + b"c,d\n" * 50_000, "a.csv:2: not a row of a table"),
    (
        "a.tmx",
        b"<tmx><tu a='" + b"x" * (12 << 20) + b"'></tu></tmx>",
        "a.tmx:1: a tag, or a <tu>, of more than",
    ),
    (
        "a.tmx",
        b"<tmx><tu><seg>" + b"x" * (12 << 20),
        "a.tmx:1: a tag, or a <tu>, of more than",
    ),
    ("a.tsv.gz", gzip.compress(b"a\tb\n", mtime=0)[:-5], "a.tsv.gz: truncated"),
    (
        "a.tsv",
        b'"a"\t"b"\n' * 30 + b'"c"\t"d\n' + b'"e"\t"f"\n',
        "a.tsv:31: not a row of a table ... written twice",
    ),
]


def test_files(tmp_path: Path) -> None:
    texts = [(name, content.encode(), words) for name, content, words in rows(FILES)]
    for name, content, words in texts + BYTES:
        (tmp_path / name).write_bytes(content)
        refuses(words, read, tmp_path / name)
    refuses(
        "https://host/a.tsv: is a URL: download the file", read, "https://host/a.tsv"
    )


ARCHIVES = """
a.tsv b.tsv => .en and .ro ... a.zip#MEMBER ... files are: a.tsv, b.tsv
a.en b.en => expected two files
README => expected two files ... its files are: README
=> its files are: none
../a.tsv => leads out of the archive
"""


def test_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    for names, words in rows(ARCHIVES):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names.split():
                archive.writestr(name, "a\tb\n")
        refuses(words, read, path)


LINES = r"""
a\nb\n => c\n => a.en has 2 lines ... a.ro has 1
a\tb\n => c\td\n => has tabs in its lines ... NAME.tsv
<?xml version="1.0"?>\n<tmx version="1.4"><body>\n<tu/>\n => a\na\na => a.en: holds markup
\n<tmx version="1.4"><body>\n<tu/>\n => a\na\na => a.en: holds markup ... convs2s new-task
a\na\n => <tmx version="1.4"><body>\n<tu/>\n => a.ro: holds markup
{"en": "a"}\n => a => a.en: holds JSON lines
"""


def test_two_files_of_lines(tmp_path: Path) -> None:
    english, romanian = tmp_path / "a.en", tmp_path / "a.ro"
    for first, second, words in rows(LINES):
        english.write_text(first)
        romanian.write_text(second)
        refuses(words, read, english, romanian)


TYPED = """
a.tsv --languages en en => --languages: expected two different codes
a.tsv --languages en-US ro => --languages: source: expected a language code
a.tsv --languages en ro --name Mine => --name: expected a name of lower-case letters
a.tsv --languages en ro --name logs => --name: 'logs' is the name of another folder
a.tsv --languages en ro --name demo_en_fr => demo_en_fr.yaml exists already
a.tsv --languages en ro => a.tsv: 2 different pairs leave none for
none.tsv --languages en ro => none.tsv: no such file
a.tsv a.en a.ro b.en --languages en ro => b.en: has no other side
a.tsv --languages en ro --columns 1 3 => a.tsv: no columns 1 and 3; its first row has: 'a'
a.tsv --languages en ro --test a.en => a.en:1: has no tab
a.jsonl --languages en ro --columns x en => a.jsonl:1: expected the keys x and en ... en, ro
"""


def test_what_is_typed(copy: Path, run: Terminal) -> None:
    run.monkeypatch.chdir(copy)
    Path("a.tsv").write_text("a\tb\nc\td\n")
    Path("a.jsonl").write_text('{"en": "a", "ro": "b"}')
    for name in ("a.en", "a.ro", "b.en"):
        Path(name).write_text("one\n")
    Path("data").mkdir()
    before = sorted(Path().rglob("*"))
    for typed, words in rows(TYPED):
        with pytest.raises(SystemExit) as ended:
            run("new-task", *typed.split())
        says(str(ended.value.code), "convs2s: error: ", words)
        assert sorted(Path().rglob("*")) == before
