"""The text of a split: from the files that a task names, of each format, to one file a side."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from convs2s.config.corpus import HoldOutPart
from convs2s.config.file_reference import local_path
from convs2s.config.load import load
from convs2s.data.corpus import (
    RawText,
    Sides,
    cut_text,
    extract_corpus,
    extract_reference,
)
from convs2s.data.formats import read_segments
from convs2s.download.archives import open_member
from convs2s.files.compressed import decompressed_file
from convs2s.files.text import NO_MARK, read_lines, text_lines
from convs2s.text.preparation import Preparation
from tests.support.archives import make_archive
from tests.support.limits import open_files_of_at_most
from tests.support.local_files import FilesBelow
from tests.support.refusals import refusal, says

URL = "https://data.example/a.tgz"
SGM = """<srcset setid="newstest2014" srclang="any">
<doc docid="2-b" genre="news">
<hl>
<seg id="1">AT&T & "Poor's" &amp;lt; &lt;b&gt; &#233;&#xE9; &unknown; &copy</seg>
</hl>
<p>
<SEG id="2"> \u00a0two
 lines \t</SEG><seg id="3">third</seg> not this
</p></doc>
<doc docid="1-a"><seg id="1"></seg></doc></srcset>
"""
SEGMENTS = [
    'AT&T & "Poor\'s" &lt; <b> éé &unknown; &copy',
    "\u00a0two lines",
    "third",
    "",
]
TALK = """<url>http://www.ted.com/talks/of_a_test.html</url>
<keywords>talks, tests</keywords>
<speaker>Emma Example</speaker>
<talkid>1</talkid>
<title>Emma Example: How to test</title>
<description>TED Talk Subtitles: A talk about tests.</description>
<reviewer></reviewer>
 Thank you.\x20
a < b

"""
SPOKEN = [
    "Emma Example: How to test",
    "TED Talk Subtitles: A talk about tests.",
    "Thank you.",
    "a < b",
    "",
]
RECORDS = [
    {"text": "One  sentence.\n", "parts": ["First. ", " Second."], "number": 1},
    {"text": "", "parts": ["Café."], "number": 2},
]
JSON_LINES = "\n".join(json.dumps(record) for record in RECORDS)


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return tmp_path / "raw/train.en.zst", tmp_path / "raw/train.fr.zst"


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def extract(
    pairs: list[tuple[str, str]], sides: Sides, hold_out: HoldOutPart | None = None
) -> list[list[str]]:
    """Write the text of pairs of files; return each side's lines."""
    folder = sides[0].parents[1]
    count = extract_corpus(RawText(pairs, FilesBelow(folder), hold_out), output=sides)
    found = [list(read_lines(side, mark=NO_MARK)) for side in sides]
    assert [len(lines) for lines in found] == [count, count]
    return found


def test_pairs_are_concatenated_in_order(tmp_path: Path, sides: Sides) -> None:
    target = gzip.compress(b"un\ndeux\n")
    make_archive(local_path(URL, tmp_path), {"c.en": b"one\ntwo\n", "c.fr.gz": target})
    source = write(tmp_path / "own.en", "three\r\n\nlast")
    own = source, write(tmp_path / "own.fr", "trois\n \x85\n!")
    assert extract([(f"{URL}#c.en", f"{URL}#c.fr.gz"), own], sides) == [
        ["one", "two", "three\r", "", "last"],
        ["un", "deux", "trois", " \x85", "!"],
    ]


def test_every_nth_pair_is_held_out(tmp_path: Path, sides: Sides) -> None:
    pairs = []
    for part, numbers in enumerate((range(1, 6), range(6, 12))):
        lines = "".join(f"{number}\n" for number in numbers)
        pairs.append((write(tmp_path / f"{part}.en", lines),) * 2)
    held = extract(pairs, sides, HoldOutPart(4, held=True))
    assert held == [["4", "8"]] * 2
    rest = extract(pairs, sides, HoldOutPart(4, held=False))
    assert rest == [[str(number) for number in range(1, 12) if number % 4]] * 2
    for hold_out in (HoldOutPart(1, held=False), HoldOutPart(12, held=True)):
        message = refusal(extract, pairs, sides, hold_out)
        says(message, "would be empty", f"11 lines, and every {hold_out.every}th is")


@pytest.mark.parametrize(
    ("name", "text", "field", "lines"),
    [
        # Plain text may have tags, also alone on a line, and braces.
        ("a", "<p>\n<br>\n{a}\nx\n", "", ["<p>", "<br>", "{a}", "x"]),
        ("a.sgm", SGM, "", SEGMENTS),
        ("a.SGML", SGM, "", SEGMENTS),
        ("train.tags.de-en.en", TALK, "", SPOKEN),
        ("a.jsonl", JSON_LINES, "#text", ["One sentence.", ""]),
        ("a.jsonl", JSON_LINES, "#parts", ["First. Second.", "Café."]),
        (
            "a.jsonl.gz",
            gzip.compress(JSON_LINES.encode()),
            "#parts[0]",
            ["First.", "Café."],
        ),
        ("a.jsonl", JSON_LINES, "#parts[1]", ["Second.", ""]),
        ("a.jsonl", JSON_LINES, "#parts[2]", ["", ""]),
    ],
)
def test_a_format_is_read_as_its_lines(
    tmp_path: Path,
    sides: Sides,
    name: str,
    text: str | bytes,
    field: str,
    lines: list[str],
) -> None:
    file = write(tmp_path / name, text) + field
    assert extract([(file, file)], sides) == [lines, lines]


def test_a_further_reference(tmp_path: Path) -> None:
    files = []
    for number, text in enumerate(("c\n\n", "é\nf\n")):
        target = write(tmp_path / f"{number}.target", "a\nb\n")
        files.append((target, write(tmp_path / f"{number}.other", text)))
    output = tmp_path / "raw/test.reference1.en.zst"
    assert extract_reference(RawText(files, FilesBelow(tmp_path)), output=output) == 4
    assert list(read_lines(output)) == ["c", "", "é", "f"]
    other = write(tmp_path / "other", "a\nb\nc\n")
    longer = RawText([(files[0][0], other)], FilesBelow(tmp_path))
    message = refusal(extract_reference, longer, tmp_path / "absent")
    says(message, f"{files[0][0]} has 2 lines but {other} has 3")
    assert not (tmp_path / "absent").exists()


# What is refused


TMX = '<?xml version="1.0"?>\n<tmx>\n<body>\n' + "<tu>\n" * 4 + "</body>\n</tmx>\n"
SIDES = '<src lang="en"><seg>a</seg></src>\n<ref lang="ro"><seg>b</seg></ref>'
IDS = '<doc docid="a">\n<seg id=1>a</seg>\n<seg id=2>b</seg>'


@pytest.mark.parametrize(
    ("files", "names", "words"),
    [
        (
            {"s": "x\n" * 3, "t": "y\n" * 2},
            "s t",
            ["s has 3 lines but", "t has 2: both"],
        ),
        (
            {"s": "x\n" * 2, "t": "y\n" * 3},
            "s t",
            ["s has 2 lines but", "t has 3: both"],
        ),
        ({"s": "", "t": "y\n" * 7}, "s t", ["s has 0 lines but", "t has 7"]),
        ({"s": "x\n" * 9, "t": ""}, "s t", ["s has 9 lines but", "t has 0"]),
        ({"s": ""}, "s s", ["would be empty: ", "s has 0 lines"]),
        (
            {"s": "a\nb\n\udce9t\udce9\n"},
            "s s",
            ["s:3: not UTF-8: byte 0xe9 at column 1"],
        ),
        ({}, "s s", ["s: no such file"]),
        ({"s.sgm": IDS, "t.sgm": IDS.replace("a", "b")}, "s.sgm t.sgm", ["segment 1"]),
        (
            {"s.sgm": IDS, "t.sgm": IDS.replace("=1", "=3")},
            "s.sgm t.sgm",
            ["s.sgm: its segment 1 has the id 1 of document a, but"],
        ),
        ({"s.jsonl": "{}"}, "s.jsonl s.jsonl", ["s.jsonl: expected a field NAME or"]),
        ({"s.JSONL": "{}"}, "s.JSONL s.JSONL", ["s.JSONL: expected a field NAME or"]),
        (
            {"s.jsonl": "{}"},
            "s.jsonl#a[x] s.jsonl#a",
            ["expected a field NAME or", "'a[x]'"],
        ),
        (
            {"s.jsonl": '{"b": 1}'},
            "s.jsonl#a s.jsonl#a",
            [":1: no field 'a'; there are b"],
        ),
        (
            {"s.jsonl": '{"a": 1}'},
            "s.jsonl#a s.jsonl#a",
            [":1: 'a' is neither a text nor a"],
        ),
        ({"s.jsonl": '{"a": ""}\n{'}, "s.jsonl#a s.jsonl#a", [":2: not JSON: "]),
        ({"s.jsonl": "[]"}, "s.jsonl#a s.jsonl#a", [":1: expected a JSON object in"]),
        (
            {"s.tmx": TMX, "t": "a\n" * 9},
            "s.tmx t",
            ["s.tmx: holds markup", "new-task"],
        ),
        ({"s": TMX[22:], "t": "a\n" * 8}, "t s", ["s: holds markup"]),
        ({"s": f"\n\n{TMX}"}, "s s", ["s: holds markup"]),
        ({"s": '{"en": "a"}\n', "t": "a\n"}, "s t", ["s: holds JSON lines", ".jsonl"]),
        ({"s.xml": SIDES}, "s.xml s.xml", ["s.xml:2: holds the source and its trans"]),
        (
            {"s.jsonl": r'{"a": ["\ud83d\ude00", "\ud83d b"]}'},
            "s.jsonl#a s.jsonl#a",
            [r"#a:1: 'a' holds \ud83d alone"],
        ),
    ],
)
def test_what_is_no_pair_of_texts_is_named_and_leaves_the_earlier(
    tmp_path: Path, sides: Sides, files: dict[str, str], names: str, words: list[str]
) -> None:
    good = write(tmp_path / "good", "a\n")
    extract([(good, good)], sides)
    for name, text in files.items():
        write(tmp_path / name, text.encode("utf-8", "surrogateescape"))
    source, target = names.split()
    pair = f"{tmp_path}/{source}", f"{tmp_path}/{target}"
    says(refusal(extract, [pair], sides), str(tmp_path), *words)
    assert [list(read_lines(side)) for side in sides] == [["a"], ["a"]]
    assert sorted(sides[0].parent.iterdir()) == sorted(sides)


def test_an_archives_member_is_named(tmp_path: Path, sides: Sides) -> None:
    make_archive(
        local_path(URL, tmp_path), {"c.en": b"a\n\xff\n", "c.fr": b"a\nb\nc\n"}
    )
    says(
        refusal(extract, [(f"{URL}#c.en", f"{URL}#c.fr")], sides),
        "a.tgz#c.en:2: not UTF",
    )
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("b.jsonl.gz", "{}")
    member = f"{tmp_path / 'a.zip'}#b.jsonl.gz"
    message = refusal(extract, [(member, member)], sides)
    says(message, "a.zip#b.jsonl.gz: JSON lines in an archive")


def test_segments_without_ids_are_beside_any(tmp_path: Path, sides: Sides) -> None:
    source = write(
        tmp_path / "s.sgm", IDS.replace("<doc docid", "<DOC sysid='s' docid")
    )
    target = write(tmp_path / "t.sgm", "<seg>x</seg><seg>y</seg>")
    same = write(tmp_path / "u.sgm", IDS)
    assert len(extract([(source, target), (source, same)], sides)[0]) == 4


# Parts, and a task's archive


@pytest.mark.parametrize("count", [1, 3, 7, 50])
def test_parts_end_to_end_are_the_input(
    tmp_path: Path, sides: Sides, count: int
) -> None:
    text = write(
        tmp_path / "text", "".join(f"\u2028{number}\n" for number in range(50))
    )
    extract([(text, text)], sides)
    parts = [(tmp_path / f"out/{i}.en", tmp_path / f"out/{i}.fr") for i in range(count)]
    with open_files_of_at_most(128):
        assert cut_text(source=sides[0], target=sides[1], outputs=parts) == 50
    for side in (0, 1):
        cut = b"".join(part[side].read_bytes() for part in parts)
        with decompressed_file(sides[side]) as stream:
            assert stream.read() == cut
    sizes = [part[0].read_bytes().count(b"\n") for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_an_archive_of_talks_becomes_the_tasks_text(root: Path, tmp_path: Path) -> None:
    task = load(root).tasks["iwslt14_de_en"]
    names = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
    members = {}
    for language in ("de", "en"):
        spoken = "".join(f" {language} {number} \n" for number in range(1, 47))
        members[f"train.tags.de-en.{language}"] = TALK[: TALK.index("<rev")] + spoken
        for name in names:
            text = (
                f'<doc><title>No</title>\n<seg id="1"> It’s &amp; {name} </seg></doc>'
            )
            members[f"IWSLT14.{name}.de-en.{language}.xml"] = text
    packed = {f"de-en/{name}": text.encode() for name, text in members.items()}
    make_archive(
        tmp_path / "dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz", packed
    )
    found = {}
    for split in ("train", "valid", "dev2010_to_tst2012"):
        sides = tmp_path / f"{split}.de", tmp_path / f"{split}.en"
        pairs = task.file_pairs(split)
        raw = RawText(pairs, FilesBelow(tmp_path), task.hold_out_of(split))
        extract_corpus(raw, output=sides)
        found[split] = list(read_lines(sides[1]))
    # Title and description come first, so that the pairs 23 and 46 are sentences 21 and 44.
    assert found["valid"] == ["en 21", "en 44"]
    assert found["train"][:3] == [*SPOKEN[:2], "en 1"]
    assert len(found["train"]) == 46
    assert found["dev2010_to_tst2012"] == [f"It’s & {name}" for name in names]
    prepared = Preparation(task.preparation.test, "en").prepare(
        "It’s & A well-made one"
    )
    assert prepared == "it &apos;s &amp; a well-made one"
    clean = task.clean
    assert (clean.minimum, clean.maximum, clean.ratio) == (1, 175, 1.5)
    assert (task.vocabulary.merges, task.vocabulary.joint) == (10_000, True)


# Real text


TEST_FULL = "www.statmt.org/wmt14/test-full.tgz#test-full/newstest2014"
DEV = "data.statmt.org/wmt19/translation-task/dev.tgz#dev/newstest201"
RAW = "raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/train"
GIGA = "www.statmt.org/wmt10/training-giga-fren.tar#giga-fren.release2.fixed"
SETIMES = "object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip#SETIMES.en-ro"


@pytest.mark.parametrize(
    ("source", "target", "pairs"),
    [
        (f"{TEST_FULL}-fren-src.en.sgm", f"{TEST_FULL}-fren-ref.fr.sgm", 3003),
        (f"{TEST_FULL}-deen-src.en.sgm", f"{TEST_FULL}-deen-ref.de.sgm", 3003),
        (f"{DEV}2-src.en.sgm", f"{DEV}2-ref.fr.sgm", 3003),
        (f"{DEV}3-src.en.sgm", f"{DEV}3-ref.fr.sgm", 3000),
        (f"{DEV}5-ende-src.en.sgm", f"{DEV}5-ende-ref.de.sgm", 2169),
        (f"{DEV}6-enro-src.en.sgm", f"{DEV}6-enro-ref.ro.sgm", 1999),
        (f"{RAW}.en.gz", f"{RAW}.fr.gz", 29_000),
        (f"{GIGA}.en.gz", f"{GIGA}.fr.gz", 29_000),
        (f"{SETIMES}.en", f"{SETIMES}.ro", None),
    ],
)
def test_real_corpora_have_their_pairs(
    shared: Path, sides: Sides, source: str, target: str, pairs: int | None
) -> None:
    files = f"{shared}/mirror/{source}", f"{shared}/mirror/{target}"
    found = len(extract([files], sides)[0])
    assert found == pairs or (pairs is None and found > 1000)


@pytest.mark.parametrize("name", ["newstest2012", "newstest2013"])
@pytest.mark.parametrize("language", ["en", "fr", "de"])
def test_segments_equal_the_plain_text(shared: Path, name: str, language: str) -> None:
    archive = shared / "mirror/data.statmt.org/wmt19/translation-task/dev.tgz"
    with (
        open_member(archive, f"dev/{name}-src.{language}.sgm") as sgm,
        open_member(archive, f"dev/{name}.{language}") as plain,
    ):
        segments = list(read_segments(text_lines(sgm.readline, "sgm"), "sgm"))
        assert segments == list(text_lines(plain.readline, "plain"))
