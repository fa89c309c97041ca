"""What hazardous text becomes on every way into the project: the table of docs/preparation.md."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.data.corpus import RawText, Sides, extract_corpus
from convs2s.decoding.test_sets import decode_test_set
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.text import NO_MARK, read_line_pairs, read_lines, write_lines
from convs2s.text.align import align_words
from convs2s.text.corpus_filter import FilterReport, tokenize_and_filter
from convs2s.text.links import read_links
from convs2s.text.preparation import tokenize_file
from tests.support.local_files import FilesBelow
from tests.unit.conftest import Terminal

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Hazard:
    """A line among good ones, and what becomes of it.

    Attributes:
        raw: the line's bytes.
        train: its words as training text, or why the filter drops its pair.
        test: its words in a test set.
        error: what is said of it instead, after the file's name and the line, if it is refused.
        linked: whether the alignment links its words if it meets them unprepared.
    """

    raw: bytes
    train: str = ""
    test: str = ""
    error: str = ""
    linked: bool = True

    def file(self) -> bytes:
        """Return a file whose second line is the hazard, the first where it starts the file."""
        good = b"the house\n"
        parts = (
            [self.raw + b"\n", good]
            if self.raw.startswith(BYTE_ORDER_MARK)
            else [good, self.raw + b"\n"]
        )
        return b"".join([*parts, b"the car\n"])


HAZARDS = {
    "invalid UTF-8": Hazard(
        b"no\xffgood", error=r":2: not UTF-8: byte 0xff at column 3"
    ),
    "NUL": Hazard(b"a\0b", "a b", "ab"),
    "CR inside a line": Hazard(b"a\rb", "ab", "a b"),
    "CRLF": Hazard(b"a b\r", "a b", "a b"),
    "U+2028": Hazard("a\u2028b".encode(), "a b", "a b"),
    "U+0085": Hazard("a\x85b".encode(), "a b", "a b"),
    "byte order mark": Hazard(BYTE_ORDER_MARK + b"a b", "a b", "a b"),
    "later byte order mark": Hazard("a \ufeff b".encode(), "a b", "a \ufeff b"),
    "10 MB": Hazard(b"x" * 10_000_000, error=":2: a line of more than 1048576 bytes"),
    "1 MB": Hazard(b"x" * 1_000_000, "long_word", "x" * 1_000_000),
    "an empty side": Hazard(b"", "empty", "", linked=False),
    "a blank side": Hazard(b" \t ", "empty", "", linked=False),
    "|||": Hazard(b"a ||| b", "a &#124; &#124; &#124; b", "a &#124; &#124; &#124; b"),
}

each_hazard = pytest.mark.parametrize("hazard", HAZARDS.values(), ids=HAZARDS)


def sides(folder: Path, stage: str) -> Sides:
    return folder / f"{stage}.en.zst", folder / f"{stage}.fr.zst"


def extracted(folder: Path, hazard: Hazard) -> list[str]:
    """Write the raw corpus, whose target side is ``un``, ``deux``, ``trois``."""
    (folder / "own.en").write_bytes(hazard.file())
    write_lines(folder / "own.fr", ["un", "deux", "trois"])
    pairs = [(str(folder / "own.en"), str(folder / "own.fr"))]
    extract_corpus(RawText(pairs, FilesBelow(folder)), output=sides(folder, "raw"))
    return list(read_lines(sides(folder, "raw")[0]))


def prepared(folder: Path, preparation: str) -> list[tuple[str, str]]:
    for raw, words, language in zip(
        sides(folder, "raw"), sides(folder, "tok"), ("en", "fr"), strict=True
    ):
        tokenize_file(raw=raw, output=words, name=preparation, language=language)
    return list(read_line_pairs(*sides(folder, "tok")))


def cleaned(folder: Path) -> tuple[list[tuple[str, str]], FilterReport]:
    report = tokenize_and_filter(
        read_line_pairs(*sides(folder, "tok"), mark=NO_MARK),
        sides=sides(folder, "clean"),
        report=folder / "report.json",
        minimum=1,
        maximum=175,
        ratio=None,
    )
    return list(read_line_pairs(*sides(folder, "clean"))), report


def in_their_places(hazard: Hazard, words: str | None) -> list[tuple[str, str]]:
    """Return the pairs of the corpus with these words for the hazard, or without its pair."""
    house, car = "the house", "the car"
    first = hazard.raw.startswith(BYTE_ORDER_MARK)
    lines: Sequence[str | None] = (words, house, car) if first else (house, words, car)
    pairs = zip(lines, ("un", "deux", "trois"), strict=True)
    return [(line, target) for line, target in pairs if line is not None]


@each_hazard
def test_training_text(tmp_path: Path, hazard: Hazard) -> None:
    if hazard.error:
        with pytest.raises(UserError, match=rf"own\.en{hazard.error}"):
            extracted(tmp_path, hazard)
        assert {path.name for path in tmp_path.iterdir()} == {"own.en", "own.fr"}
        return
    assert len(extracted(tmp_path, hazard)) == 3
    assert len(prepared(tmp_path, "moses_train")) == 3
    pairs, report = cleaned(tmp_path)
    dropped = dict[str, int](report["dropped"].items())
    is_dropped = hazard.train in dropped
    assert pairs == in_their_places(hazard, None if is_dropped else hazard.train)
    assert dropped.get(hazard.train, 0) == is_dropped
    assert (report["read"], report["kept"]) == (3, len(pairs))
    source, target = sides(tmp_path, "clean")
    links = tmp_path / "links"
    assert align_words(source=source, target=target, links=links, pairs=None) == len(
        pairs
    )


@each_hazard
def test_test_set(tmp_path: Path, model: Path, hazard: Hazard) -> None:
    if hazard.error:
        with pytest.raises(UserError, match=rf"own\.en{hazard.error}"):
            extracted(tmp_path, hazard)
        return
    assert len(extracted(tmp_path, hazard)) == 3
    assert prepared(tmp_path, "moses_test") == in_their_places(hazard, hazard.test)
    lines, text = tmp_path / "test.jsonl", tmp_path / "test.txt"
    translator = LineTranslator([model], DecodingSettings(), "cpu")
    decode_test_set(
        translator, source=sides(tmp_path, "raw")[0], lines=lines, text=text
    )
    assert [len(list(read_lines(path))) for path in (lines, text)] == [3, 3]


@each_hazard
def test_translate(run: Terminal, model: Path, hazard: Hazard) -> None:
    if hazard.error:
        with pytest.raises(
            SystemExit, match=rf"convs2s: error: standard input{hazard.error}"
        ):
            run("translate", model, text=hazard.file())
        return
    answers = run("translate", model, "--json", text=hazard.file()).split("\n")
    tokens = [json.loads(answer)["source_tokens"] for answer in answers[:-1]]
    assert tokens == [line.split() for line, _ in in_their_places(hazard, hazard.test)]
    assert run("translate", model, text=hazard.file()).count("\n") == 3


@each_hazard
def test_alignment_of_unprepared_text(tmp_path: Path, hazard: Hazard) -> None:
    source, target, links = (
        tmp_path / name for name in ("train.en", "train.fr", "links")
    )
    source.write_bytes(hazard.file())
    write_lines(target, ["un", "deux", "trois"])
    if "UTF-8" in hazard.error:
        with pytest.raises(UserError, match=rf"train\.en{hazard.error}"):
            align_words(source=source, target=target, links=links, pairs=None)
        return
    aligned = align_words(source=source, target=target, links=links, pairs=None)
    assert aligned == 2 + hazard.linked
    assert [bool(line) for line in read_links(links)] == [True, hazard.linked, True]
