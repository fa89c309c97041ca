"""What hazardous text becomes on every way into the project: the table of docs/preparation.md."""

import json
from pathlib import Path

import pytest

from convs2s.data.corpus import RawText, extract_corpus
from convs2s.files.text import NO_MARK, read_line_pairs, write_lines
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.preparation import tokenize_file
from tests.conftest import Terminal
from tests.support.local_files import FilesBelow
from tests.support.refusals import refusal, says

BARS = "a &#124; &#124; &#124; b"

# The bytes of a line; its words as training text, or why the filter drops its pair; its words in a
# test set.
HAZARDS = {
    "NUL": (b"a\0b", "a b", "ab"),
    "CR inside a line": (b"a\rb", "ab", "a b"),
    "CRLF": (b"a b\r", "a b", "a b"),
    "U+2028": ("a\u2028b".encode(), "a b", "a b"),
    "U+0085": ("a\x85b".encode(), "a b", "a b"),
    "byte order mark": (b"\xef\xbb\xbfa b", "a b", "a b"),
    "later byte order mark": ("a \ufeff b".encode(), "a b", "a \ufeff b"),
    "1 MB": (b"x" * 1_000_000, "long_word", "x" * 1_000_000),
    "an empty side": (b"", "empty", ""),
    "a blank side": (b" \t ", "empty", ""),
    "|||": (b"a ||| b", BARS, BARS),
}
OTHERS = ["the house", "the car"]
TARGETS = ["un", "deux", "trois"]


def own_text(folder: Path) -> RawText:
    write_lines(folder / "own.fr", TARGETS)
    own = (str(folder / "own.en"), str(folder / "own.fr"))
    return RawText([own], FilesBelow(folder))


def sides(folder: Path, stage: str) -> tuple[Path, Path]:
    return folder / f"{stage}.en.zst", folder / f"{stage}.fr.zst"


def test_text_of_a_corpus(tmp_path: Path) -> None:
    raw, words, clean = (sides(tmp_path, stage) for stage in ("raw", "tok", "clean"))

    def tokenized(name: str) -> list[tuple[str, str]]:
        for text, output, language in zip(raw, words, ("en", "fr"), strict=True):
            tokenize_file(raw=text, output=output, name=name, language=language)
        return list(read_line_pairs(*words, mark=NO_MARK))

    for hazard, (line, train, test) in HAZARDS.items():
        (tmp_path / "own.en").write_bytes(line + b"\nthe house\nthe car\n")
        extract_corpus(own_text(tmp_path), output=raw)
        pairs = list(zip([test, *OTHERS], TARGETS, strict=True))
        assert tokenized("moses_test") == pairs, hazard
        report = tokenize_and_filter(
            tokenized("moses_train"),
            sides=clean,
            report=tmp_path / "report.json",
            minimum=1,
            maximum=175,
            ratio=None,
        )
        dropped = [reason for reason, count in report["dropped"].items() if count]
        kept = [] if dropped == [train] else [(train, "un")]
        assert list(read_line_pairs(*clean)) == [*kept, *pairs[1:]], hazard


def test_translate(model: Path, run: Terminal) -> None:
    for hazard, (line, _, test) in HAZARDS.items():
        said = run("translate", model, "--json", text=line + b"\nthe house\n")
        answers = map(json.loads, said.split("\n")[:-1])
        tokens = [answer["source_tokens"] for answer in answers]
        assert tokens == [test.split(), ["the", "house"]], hazard


def test_what_is_refused(tmp_path: Path, model: Path, run: Terminal) -> None:
    for line, said in (
        (b"no\xffgood", "not UTF-8: byte 0xff at column 3"),
        (b"x" * 10_000_000, "a line of more than 1048576 bytes"),
    ):
        text = b"the house\n" + line + b"\nthe car\n"
        (tmp_path / "own.en").write_bytes(text)
        output = sides(tmp_path, "raw")
        message = refusal(extract_corpus, own_text(tmp_path), output=output)
        says(message, "own.en:2: ", said)
        assert {path.name for path in tmp_path.iterdir()} == {"own.en", "own.fr"}
        with pytest.raises(SystemExit) as error:
            run("translate", model, text=text)
        says(str(error.value), "convs2s: error: standard input:2: ", said)
