"""The text of a split: from the files that a task names, of each format, to one file a side."""

import gzip
from pathlib import Path

import pytest

from convs2s.config.corpus import HoldOutPart
from convs2s.config.file_reference import local_path
from convs2s.config.settings import Settings
from convs2s.data.corpus import RawText, cut_text, extract_corpus, extract_reference
from convs2s.files.text import NO_MARK, read_lines
from tests.support.archives import FilesBelow, make_archive
from tests.support.refusals import refusal, refuses, rows, says

pytestmark = pytest.mark.usefixtures("in_folder")

FILES = FilesBelow(Path())
SIDES = Path("raw/train.en.zst"), Path("raw/train.fr.zst")
URL = "https://data.example/a.tgz"


def write(name: str, text: str) -> str:
    """Write a file in the encoding and the compression of its name; return its name."""
    content = text.encode("utf-8", "surrogateescape")
    Path(name).write_bytes(gzip.compress(content) if ".gz" in name else content)
    return name


def extract(
    *pairs: tuple[str, str], hold_out: HoldOutPart | None = None
) -> list[list[str]]:
    """Write the text of pairs of files; return each side's lines."""
    count = extract_corpus(RawText(pairs, FILES, hold_out), output=SIDES)
    found = [list(read_lines(side, mark=NO_MARK)) for side in SIDES]
    assert [len(lines) for lines in found] == [count, count]
    return found


def test_pairs_are_concatenated_in_order() -> None:
    target = gzip.compress(b"un\ndeux\n")
    make_archive(
        local_path(URL, Path()),
        {"c.en": b"one\ntwo\n", "c.fr.gz": target, "bad": b"a\n\xff\n"},
    )
    own = write("own.en", "three\r\n\nlast"), write("own.fr", "trois\n \x85\n!")
    assert extract((f"{URL}#c.en", f"{URL}#c.fr.gz"), own) == [
        ["one", "two", "three\r", "", "last"],
        ["un", "deux", "trois", " \x85", "!"],
    ]
    refuses("a.tgz#bad:2: not UTF", extract, (f"{URL}#bad",) * 2)


def test_every_nth_pair_is_held_out() -> None:
    first = write("first", "1\n2\n3\n4\n5\n")
    second = write("second", "6\n7\n8\n9\n10\n11\n")
    pairs = (first, first), (second, second)
    assert extract(*pairs, hold_out=HoldOutPart(4, held=True)) == [["4", "8"]] * 2
    rest = [str(number) for number in range(1, 12) if number % 4]
    assert extract(*pairs, hold_out=HoldOutPart(4, held=False)) == [rest] * 2
    for none in (HoldOutPart(1, held=False), HoldOutPart(12, held=True)):
        message = refusal(extract, *pairs, hold_out=none)
        says(message, "would be empty", f"11 lines, and every {none.every}th is")


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
SEGMENTS = """AT&T & "Poor's" &lt; <b> éé &unknown; &copy|\u00a0two lines|third|"""
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
SPOKEN = "Emma Example: How to test|TED Talk Subtitles: A talk about tests.|Thank you.|a < b|"

# Plain text may have tags, also alone on a line, and braces.
OTHER_FORMATS = r"""
a => <p>\n<br>\n{a}\nx\n => <p>|<br>|{a}|x
a.jsonl#text => {"text": "One  sentence.\\n"}\n{"text": ""} => One sentence.|
a.jsonl#all => {"all": ["First. ", " Second."]}\n{"all": ["\u00e9."]} => First. Second.|\u00e9.
a.jsonl.gz#all[0] => {"all": ["First. ", " Second."]}\n{"all": ["Third."]} => First.|Third.
a.jsonl#all[1] => {"all": ["First. ", " Second."]}\n{"all": ["Third."]} => Second.|
"""


def test_a_format_is_read_as_its_lines() -> None:
    for file, text, lines in (
        ("a.sgm", SGM, SEGMENTS),
        ("a.SGML", SGM, SEGMENTS),
        ("train.tags.de-en.en", TALK, SPOKEN),
        *rows(OTHER_FORMATS),
    ):
        write(file.partition("#")[0], text)
        assert extract((file, file)) == [lines.split("|")] * 2, file


def test_a_further_reference() -> None:
    target = write("target", "a\nb\n")
    others = write("first", "c\n\n"), write("second", "\u00e9\nf\n")
    text = RawText([(target, other) for other in others], FILES)
    output = Path("raw/test.reference1.en.zst")
    assert extract_reference(text, output=output) == 4
    assert list(read_lines(output)) == ["c", "", "\u00e9", "f"]


# A file of the source and its text, one of the target, where it is another, and what is said.
REFUSED = r"""
s => x\nx\nx\n => t => y\ny\n => s has 3 lines but ... t has 2: both
s => x\nx\n => t => y\ny\ny\n => s has 2 lines but ... t has 3: both
s => => => => would be empty: ... s has 0 lines
s => a\nb\n\udce9t\udce9\n => => => s:3: not UTF-8: byte 0xe9 at column 1
s.sgm => <doc docid="a"><seg id=1>x</seg> => t.sgm => <doc docid="b"><seg id=1>x</seg> => segment 1
s.sgm => <seg id=1>a</seg> => t.sgm => <seg id=3>a</seg> => s.sgm: its segment 1 has the id 1
s.jsonl => {} => => => s.jsonl: expected a field NAME or
s.JSONL => {} => => => s.JSONL: expected a field NAME or
s.jsonl#a[x] => {} => => => expected a field NAME or ... 'a[x]'
s.jsonl#a => {"b": 1} => => => :1: no field 'a'; there are b
s.jsonl#a => {"a": 1} => => => :1: 'a' is neither a text nor a
s.jsonl#a => {"a": ""}\n{ => => => :2: not JSON:
s.jsonl#a => [] => => => :1: expected a JSON object in
s.jsonl#a => {"a": ["\\ud83d\\ude00", "\\ud83d b"]} => => => #a:1: 'a' holds \\ud83d alone
a.zip#b.jsonl.gz => {} => => => a.zip#b.jsonl.gz: JSON lines in an archive
s.tmx => <?xml?>\n<tmx>\n<tu> => t => a\nb\nc\n => s.tmx: holds markup ... new-task
s => <tu>\n<tu>\n<tu>\n => t => a\n => s: holds markup
s => \n\n<?xml?>\n<tmx>\n => => => s: holds markup
s => {"en": "a"}\n => t => a\n => s: holds JSON lines ... .jsonl
s.xml => <src lang="a"><seg>a</seg></src>\n<ref lang="b"><seg>b</seg></ref> => => => s.xml:2: holds
"""


def test_what_is_no_pair_of_texts_is_named_and_leaves_the_earlier() -> None:
    good = write("good", "a\n")
    extract((good, good))
    long = (
        "s",
        "a\n" + "x" * 2_000_000,
        "",
        "",
        "s:2: a line of more than 1048576 bytes",
    )
    for source, text, target, other, words in (*rows(REFUSED), long):
        write(source.partition("#")[0], text)
        if target:
            write(target, other)
        refuses(words, extract, (source, target or source))
        assert [list(read_lines(side)) for side in SIDES] == [["a"], ["a"]]
        assert sorted(Path("raw").iterdir()) == sorted(SIDES)


def test_segments_without_ids_are_beside_any() -> None:
    numbered = "<seg id=1>a</seg>\n<seg id=2>b</seg>"
    of_system = write("s.sgm", f"<DOC sysid='s' docid='a'>{numbered}")
    bare = write("t.sgm", "<seg>x</seg><seg>y</seg>")
    same = write("u.sgm", f"<doc docid='a'>{numbered}")
    assert len(extract((of_system, bare), (of_system, same))[0]) == 4


def test_parts_end_to_end_are_the_input() -> None:
    lines = "".join(f"\u2028{number}\n" for number in range(50))
    extract((write("text", lines), "text"))
    for count in (1, 7, 50):
        parts = [(Path(f"out/{n}.en"), Path(f"out/{n}.fr")) for n in range(count)]
        assert cut_text(source=SIDES[0], target=SIDES[1], outputs=parts) == 50
        for files in zip(*parts, strict=True):
            found = [file.read_bytes() for file in files]
            assert b"".join(found).decode() == lines
            sizes = [part.count(b"\n") for part in found]
            assert max(sizes) - min(sizes) <= 1


def test_an_archive_of_talks_becomes_the_tasks_text(settings: Settings) -> None:
    task = settings.tasks["iwslt14_de_en"]
    spoken = "".join(f" {number} \n" for number in range(1, 47))
    talks = TALK.partition("<rev")[0] + spoken
    names = "de-en/train.tags.de-en.de", "de-en/train.tags.de-en.en"
    archive = Path("dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz")
    make_archive(archive, dict.fromkeys(names, talks.encode()))
    for split, lines in (
        ("train", SPOKEN.split("|")[:2]),
        # Title and description come first, so that the pairs 23 and 46 are these sentences.
        ("valid", ["21", "44"]),
    ):
        hold_out = task.hold_out_of(split)
        found = extract(*task.file_pairs(split), hold_out=hold_out)
        assert found[1][:2] == lines


REAL = """
www.statmt.org/wmt14/test-full.tgz#test-full/newstest2014-fren-{}.sgm => src.en ref.fr => 3003
www.statmt.org/wmt14/test-full.tgz#test-full/newstest2014-deen-{}.sgm => src.en ref.de => 3003
data.statmt.org/wmt19/translation-task/dev.tgz#dev/newstest2012-{}.sgm => src.en ref.fr => 3003
data.statmt.org/wmt19/translation-task/dev.tgz#dev/newstest2013-{}.sgm => src.en ref.fr => 3000
data.statmt.org/wmt19/translation-task/dev.tgz#dev/newstest2015-ende-{}.sgm => src.en ref.de => 2169
data.statmt.org/wmt19/translation-task/dev.tgz#dev/newstest2016-enro-{}.sgm => src.en ref.ro => 1999
raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/train.{}.gz => en fr => 29000
www.statmt.org/wmt10/training-giga-fren.tar#giga-fren.release2.fixed.{}.gz => en fr => 29000
"""


def test_real_corpora_have_their_pairs(shared: Path) -> None:
    for file, sides, pairs in rows(REAL):
        mirrored = f"{shared}/mirror/{file}"
        source, target = map(mirrored.format, sides.split())
        assert len(extract((source, target))[0]) == int(pairs), file
