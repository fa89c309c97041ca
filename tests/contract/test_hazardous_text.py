"""What hazardous text becomes on every way into the project: the table of docs/preparation.md."""

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.data.corpus import RawText, extract_corpus
from convs2s.files.text import NO_MARK, read_line_pairs, write_lines
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.preparation import tokenize_file
from tests.support.local_files import FilesBelow
from tests.support.refusals import refusal, says

MARK = b"\xef\xbb\xbf"
BARS = "a &#124; &#124; &#124; b"


@dataclass(frozen=True)
class Hazard:
    """A line among good ones, and what becomes of it.

    Attributes:
        raw: the line's bytes.
        train: its words as training text, or why the filter drops its pair.
        test: its words in a test set.
        error: what is said of it instead, after the file's name and the line, if it is refused.
    """

    raw: bytes
    train: str = ""
    test: str = ""
    error: str = ""

    def lines(self, hazard: str) -> list[str]:
        """Return words of the file, these ones in the hazard's place: the first of a mark."""
        if self.raw.startswith(MARK):
            return [hazard, "the house", "the car"]
        return ["the house", hazard, "the car"]

    def file(self) -> bytes:
        content = "".join(f"{line}\n" for line in self.lines("HAZARD")).encode()
        return content.replace(b"HAZARD", self.raw)


HAZARDS = {
    "invalid UTF-8": Hazard(b"no\xffgood", error="not UTF-8: byte 0xff at column 3"),
    "NUL": Hazard(b"a\0b", "a b", "ab"),
    "CR inside a line": Hazard(b"a\rb", "ab", "a b"),
    "CRLF": Hazard(b"a b\r", "a b", "a b"),
    "U+2028": Hazard("a\u2028b".encode(), "a b", "a b"),
    "U+0085": Hazard("a\x85b".encode(), "a b", "a b"),
    "byte order mark": Hazard(MARK + b"a b", "a b", "a b"),
    "later byte order mark": Hazard("a \ufeff b".encode(), "a b", "a \ufeff b"),
    "10 MB": Hazard(b"x" * 10_000_000, error="a line of more than 1048576 bytes"),
    "1 MB": Hazard(b"x" * 1_000_000, "long_word", "x" * 1_000_000),
    "an empty side": Hazard(b"", "empty"),
    "a blank side": Hazard(b" \t ", "empty"),
    "|||": Hazard(b"a ||| b", BARS, BARS),
}
TARGETS = ["un", "deux", "trois"]

each_hazard = pytest.mark.parametrize("hazard", HAZARDS.values(), ids=HAZARDS)


def sides(folder: Path, stage: str) -> tuple[Path, Path]:
    return folder / f"{stage}.en.zst", folder / f"{stage}.fr.zst"


def prepare(folder: Path, name: str) -> list[str]:
    """Tokenize the raw corpus; return the source lines."""
    files = zip(sides(folder, "raw"), sides(folder, "tok"), ("en", "fr"), strict=True)
    for raw, words, language in files:
        tokenize_file(raw=raw, output=words, name=name, language=language)
    pairs = list(read_line_pairs(*sides(folder, "tok")))
    assert [target for _, target in pairs] == TARGETS
    return [source for source, _ in pairs]


@each_hazard
def test_text_of_a_corpus(tmp_path: Path, hazard: Hazard) -> None:
    (tmp_path / "own.en").write_bytes(hazard.file())
    write_lines(tmp_path / "own.fr", TARGETS)
    text = RawText(
        [(str(tmp_path / "own.en"), str(tmp_path / "own.fr"))], FilesBelow(tmp_path)
    )
    raw = sides(tmp_path, "raw")
    if hazard.error:
        says(refusal(extract_corpus, text, output=raw), "own.en:2: ", hazard.error)
        assert {path.name for path in tmp_path.iterdir()} == {"own.en", "own.fr"}
        return
    extract_corpus(text, output=raw)
    assert prepare(tmp_path, "moses_test") == hazard.lines(hazard.test)
    prepare(tmp_path, "moses_train")
    report = tokenize_and_filter(
        read_line_pairs(*sides(tmp_path, "tok"), mark=NO_MARK),
        sides=sides(tmp_path, "clean"),
        report=tmp_path / "report.json",
        minimum=1,
        maximum=175,
        ratio=None,
    )
    dropped = {reason: count for reason, count in report["dropped"].items() if count}
    expected = list(zip(hazard.lines(hazard.train), TARGETS, strict=True))
    if dropped:
        assert dropped == {hazard.train: 1}
        expected = [pair for pair in expected if pair[0] != hazard.train]
    assert list(read_line_pairs(*sides(tmp_path, "clean"))) == expected


@each_hazard
def test_translate(
    model: Path,
    hazard: Hazard,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = io.TextIOWrapper(io.BytesIO(hazard.file()))
    monkeypatch.setattr(sys, "stdin", given)
    arguments = ["translate", str(model), "--json"]
    if hazard.error:
        with pytest.raises(SystemExit) as error:
            main(arguments)
        says(str(error.value), "convs2s: error: standard input:2: ", hazard.error)
        return
    main(arguments)
    answers = capsys.readouterr().out.split("\n")[:-1]
    tokens = [json.loads(answer)["source_tokens"] for answer in answers]
    assert tokens == [line.split() for line in hazard.lines(hazard.test)]
