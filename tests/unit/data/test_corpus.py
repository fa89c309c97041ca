import gzip
import zipfile
from pathlib import Path

import pytest

from convs2s.config.corpus import HoldOutPart
from convs2s.config.file_reference import local_path
from convs2s.data.corpus import (
    RawText,
    Sides,
    cut_text,
    extract_corpus,
    extract_reference,
)
from convs2s.data.formats import read_segments
from convs2s.download.archives import open_member
from convs2s.errors import UserError
from convs2s.files.compressed import decompressed_file
from convs2s.files.text import read_line_pairs, read_lines, text_lines, write_lines
from tests.support.limits import open_files_of_at_most
from tests.support.local_files import FilesBelow, write_tar

URL = "https://data.example/a.tgz"


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return tmp_path / "raw/train.en.zst", tmp_path / "raw/train.fr.zst"


def write(path: Path, text: str | bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def text_of(path: Path) -> str:
    with decompressed_file(path) as stream:
        return stream.read().decode()


def extract(
    pairs: list[tuple[str, str]],
    folder: Path,
    sides: Sides,
    hold_out: HoldOutPart | None = None,
) -> int:
    return extract_corpus(RawText(pairs, FilesBelow(folder), hold_out), output=sides)


def nothing_written(sides: Sides) -> bool:
    return not sides[0].parent.exists() or not list(sides[0].parent.iterdir())


# Extraction


def test_pairs_are_concatenated_in_order(tmp_path: Path, sides: Sides) -> None:
    write_tar(
        local_path(URL, tmp_path),
        {"c.en": b"one\ntwo\n", "c.fr.gz": gzip.compress(b"un\ndeux\n")},
    )
    pairs = [
        (f"{URL}#c.en", f"{URL}#c.fr.gz"),
        (
            write(tmp_path / "own.en", "three\r\n\nlast"),
            write(tmp_path / "own.fr", "trois\n \x85\n!"),
        ),
    ]
    assert extract(pairs, tmp_path, sides) == 5
    assert text_of(sides[0]) == "one\ntwo\nthree\r\n\nlast\n"
    assert text_of(sides[1]) == "un\ndeux\ntrois\n \x85\n!\n"


def test_every_nth_pair_is_held_out(tmp_path: Path, sides: Sides) -> None:
    pairs = [
        tuple(
            write(tmp_path / f"{part}.{side}", "".join(f"{side}{i}\n" for i in numbers))
            for side in "st"
        )
        for part, numbers in enumerate((range(1, 6), range(6, 12)))
    ]
    kept = [i for i in range(1, 12) if i % 4]
    for held, numbers in ((False, kept), (True, [4, 8])):
        part = HoldOutPart(4, held)
        assert extract([(s, t) for s, t in pairs], tmp_path, sides, part) == len(
            numbers
        )
        assert list(read_line_pairs(*sides)) == [(f"s{i}", f"t{i}") for i in numbers]


@pytest.mark.parametrize(("every", "held"), [(1, False), (3, True)])
def test_a_part_without_lines_is_an_error(
    tmp_path: Path, sides: Sides, every: int, held: bool
) -> None:
    source = write(tmp_path / "own.en", "a\nb\n")
    with pytest.raises(
        UserError, match=f"would be empty: .*own.en has 2 lines, and every {every}th"
    ):
        extract([(source, source)], tmp_path, sides, HoldOutPart(every, held))
    assert nothing_written(sides)


def test_an_empty_file_is_an_error(tmp_path: Path, sides: Sides) -> None:
    source = write(tmp_path / "own.en", "")
    with pytest.raises(UserError, match=r"own\.en has 0 lines"):
        extract([(source, source)], tmp_path, sides)
    assert nothing_written(sides)


@pytest.mark.parametrize(("source", "target"), [(3, 2), (2, 3), (0, 7), (9, 0)])
def test_sides_of_different_length_are_named(
    tmp_path: Path, sides: Sides, source: int, target: int
) -> None:
    write_tar(
        local_path(URL, tmp_path), {"c.en": b"x\n" * source, "c.fr": b"y\n" * target}
    )
    good = write(tmp_path / "own.en", "a\n")
    pairs = [(good, good), (f"{URL}#c.en", f"{URL}#c.fr")]
    place = "data.example/a.tgz"
    message = rf"{place}#c\.en has {source} lines but .*{place}#c\.fr has {target}: both sides"
    with pytest.raises(UserError, match=message):
        extract(pairs, tmp_path, sides)
    assert nothing_written(sides)


def test_invalid_utf8_is_named_by_file_and_line(tmp_path: Path, sides: Sides) -> None:
    good = write(tmp_path / "own.en", "a\nb\nc\n")
    bad = write(tmp_path / "own.fr", b"a\nb\n\xe9t\xe9\n")
    with pytest.raises(UserError, match=r"own\.fr:3: not UTF-8: byte 0xe9 at column 1"):
        extract([(good, bad)], tmp_path, sides)
    write_tar(local_path(URL, tmp_path), {"c.en": b"a\n\xff\n"})
    with pytest.raises(UserError, match=r"a\.tgz#c\.en:2: not UTF-8"):
        extract([(f"{URL}#c.en", good)], tmp_path, sides)
    assert nothing_written(sides)


def test_a_missing_file_is_named(tmp_path: Path, sides: Sides) -> None:
    with pytest.raises(UserError, match=r"absent\.en: no such file"):
        extract([(str(tmp_path / "absent.en"), "x")], tmp_path, sides)


def test_an_error_leaves_earlier_outputs_alone(tmp_path: Path, sides: Sides) -> None:
    good = write(tmp_path / "own.en", "a\n")
    extract([(good, good)], tmp_path, sides)
    with pytest.raises(UserError):
        extract(
            [(good, good), (good, write(tmp_path / "two", "a\nb\n"))], tmp_path, sides
        )
    assert [text_of(side) for side in sides] == ["a\n", "a\n"]
    assert sorted(sides[0].parent.iterdir()) == sorted(sides)


# sgm

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


@pytest.mark.parametrize("suffix", ["sgm", "SGM", "sgml"])
def test_segments(tmp_path: Path, sides: Sides, suffix: str) -> None:
    source = write(tmp_path / f"test-src.en.{suffix}", SGM)
    target = write(tmp_path / "test-ref.fr", "1\n2\n3\n4\n")
    assert extract([(source, target)], tmp_path, sides) == 4
    assert list(read_lines(sides[0])) == [
        'AT&T & "Poor\'s" &lt; <b> éé &unknown; &copy',
        "\u00a0two lines",
        "third",
        "",
    ]


@pytest.mark.parametrize(
    ("reference", "refused"),
    [
        ('<doc docid="a"><seg id="1">x</seg><seg id="2">y</seg>', False),
        ("<seg>x</seg><seg>y</seg>", False),
        ('<doc docid="a"><seg id="2">y</seg><seg id="1">x</seg>', True),
        ('<doc docid="b"><seg id="1">x</seg><seg id="2">y</seg>', True),
    ],
    ids=["the same", "without ids", "another order", "another document"],
)
def test_segments_of_different_ids_are_no_pair(
    tmp_path: Path, sides: Sides, reference: str, refused: bool
) -> None:
    text = "<DOC sysid='src' docid='a'>\n<seg id=1>a</seg>\n<seg id=2>b</seg>"
    pair = write(tmp_path / "src.sgm", text), write(tmp_path / "ref.sgm", reference)
    if not refused:
        assert extract([pair], tmp_path, sides) == 2
        return
    with pytest.raises(
        UserError, match=r"src.sgm: its segment 1 has the id 1 of document a, but"
    ):
        extract([pair], tmp_path, sides)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "<seg id=1>a</seg>\n<seg id=2>b\n<seg id=3>c</seg>",
            "t:3: unexpected <seg id=3>",
        ),
        ("a</seg>", "t:1: unexpected </seg>"),
        ("<doc>\n<seg id=1>a", "t:2: this <seg> is not closed"),
        ("one\ntwo", "t: no <seg> in its 2 lines"),
    ],
)
def test_broken_sgm(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        list(read_segments(text.split("\n"), "t"))


# Parts


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_parts_end_to_end_are_the_input(
    tmp_path: Path, sides: Sides, count: int
) -> None:
    for letter, path in zip("st", sides, strict=True):
        write_lines(path, [f"{letter}\u2028{i}" for i in range(16)])
    parts = [
        (
            tmp_path / f"raw/train.{i}-of-{count}.en.zst",
            tmp_path / f"raw/train.{i}-of-{count}.fr.zst",
        )
        for i in range(1, count + 1)
    ]
    assert cut_text(source=sides[0], target=sides[1], outputs=parts) == 16
    for side in (0, 1):
        assert "".join(text_of(part[side]) for part in parts) == text_of(sides[side])
    lengths = [len(list(read_line_pairs(*part))) for part in parts]
    assert max(lengths) - min(lengths) <= 1


def test_parts_that_are_cut_are_not_open_all_at_once(tmp_path: Path) -> None:
    text, digits = tmp_path / "train.en", range(50)
    write_lines(text, map(str, digits))
    parts = [(tmp_path / f"out/{i}.en", tmp_path / f"out/{i}.fr") for i in digits]
    with open_files_of_at_most(128):
        assert cut_text(source=text, target=text, outputs=parts) == len(parts)
    assert [text_of(target) for _, target in parts] == [f"{i}\n" for i in digits]


def test_unequal_sides_and_too_many_parts_are_errors(
    tmp_path: Path, sides: Sides
) -> None:
    write_lines(sides[0], ["a", "b"])
    write_lines(sides[1], ["a"])
    parts = [
        (tmp_path / f"out/{i}.en.zst", tmp_path / f"out/{i}.fr.zst") for i in range(3)
    ]
    with pytest.raises(
        UserError, match=r"train\.en\.zst has 2 lines but .* has 1: both sides"
    ):
        cut_text(source=sides[0], target=sides[1], outputs=parts)
    with pytest.raises(
        UserError, match="2 lines for 3 parts: set fewer, by --set-scatter parts=2"
    ):
        cut_text(source=sides[0], target=sides[0], outputs=parts)
    assert not (tmp_path / "out").exists()


# Real text


TEST_FULL = "www.statmt.org/wmt14/test-full.tgz#test-full"
DEV = "data.statmt.org/wmt19/translation-task/dev.tgz#dev"


@pytest.mark.parametrize(
    ("members", "target", "segments"),
    [
        (f"{TEST_FULL}/newstest2014-fren", "fr", 3003),
        (f"{TEST_FULL}/newstest2014-deen", "de", 3003),
        (f"{DEV}/newstest2012", "fr", 3003),
        (f"{DEV}/newstest2013", "fr", 3000),
        (f"{DEV}/newstest2015-ende", "de", 2169),
        (f"{DEV}/newstest2016-enro", "ro", 1999),
    ],
)
def test_test_sets_have_their_segments(
    shared: Path, tmp_path: Path, sides: Sides, members: str, target: str, segments: int
) -> None:
    files = f"{shared}/mirror/{members}"
    pair = (f"{files}-src.en.sgm", f"{files}-ref.{target}.sgm")
    assert extract([pair], tmp_path, sides) == segments


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


def test_multi30k_from_the_mirror(shared: Path, tmp_path: Path, sides: Sides) -> None:
    folder = (
        shared
        / "mirror/raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
    )
    counts = extract(
        [(f"{folder}/train.en.gz", f"{folder}/train.fr.gz")], tmp_path, sides
    )
    assert counts == 29_000


def test_a_nested_member_and_a_zip_from_the_mirror(
    shared: Path, tmp_path: Path, sides: Sides
) -> None:
    giga = f"{shared}/mirror/www.statmt.org/wmt10/training-giga-fren.tar#giga-fren.release2.fixed"
    setimes = f"{shared}/mirror/object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip"
    setimes += "#SETIMES.en-ro"
    assert extract([(f"{giga}.en.gz", f"{giga}.fr.gz")], tmp_path, sides) == 29_000
    assert extract([(f"{setimes}.en", f"{setimes}.ro")], tmp_path, sides) > 1000


# Records, and further references


def test_fields_of_json_lines(tmp_path: Path, sides: Sides) -> None:
    records = '{"source": ["One.", "Two."], "title": "1"}\n{"source": ["Three."], "title": "2"}'
    path = write(tmp_path / "a.jsonl.gz", gzip.compress(records.encode()))
    pairs = [
        (f"{path}#source[0]", f"{path}#title"),
        (f"{path}#source[1]", f"{path}#source"),
    ]
    assert extract(pairs, tmp_path, sides) == 4
    assert list(read_lines(sides[0])) == ["One.", "Three.", "Two.", ""]
    assert list(read_lines(sides[1])) == ["1", "2", "One. Two.", "Three."]


def test_json_lines_need_a_field(tmp_path: Path, sides: Sides) -> None:
    for name in ("a.jsonl", "b.JSONL"):
        path = write(tmp_path / name, '{"a": "b"}\n')
        with pytest.raises(
            UserError, match=rf"{name}: expected a field NAME or NAME\[N\] after #"
        ):
            extract([(path, path)], tmp_path, sides)
        assert nothing_written(sides)


def test_json_lines_of_an_archive_are_refused(tmp_path: Path, sides: Sides) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("b.jsonl.gz", "{}")
    member = f"{tmp_path / 'a.zip'}#b.jsonl.gz"
    with pytest.raises(
        UserError, match=r"a\.zip#b\.jsonl\.gz: JSON lines in an archive"
    ):
        extract([(member, member)], tmp_path, sides)


def test_a_further_reference(tmp_path: Path) -> None:
    files = [
        (
            write(tmp_path / f"{n}.target", f"a{n}\nb{n}\n"),
            write(tmp_path / f"{n}.other", text),
        )
        for n, text in enumerate(("c\n\n", "é\nf\n"))
    ]
    output = tmp_path / "raw/test.reference1.en.zst"
    assert extract_reference(RawText(files, FilesBelow(tmp_path)), output=output) == 4
    assert list(read_lines(output)) == ["c", "", "é", "f"]


@pytest.mark.parametrize(("lines", "count"), [("a\n", 1), ("a\nb\nc\n", 3), ("", 0)])
def test_a_reference_of_another_length_is_named(
    tmp_path: Path, lines: str, count: int
) -> None:
    target = write(tmp_path / "target.txt", "a\nb\n")
    other = write(tmp_path / "other.txt", lines)
    with pytest.raises(UserError) as error:
        extract_reference(
            RawText([(target, other)], FilesBelow(tmp_path)),
            output=tmp_path / "raw/r.zst",
        )
    assert f"{target} has 2 lines but {other} has {count}" in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.glob("raw/*"))
