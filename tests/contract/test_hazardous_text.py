"""What hazardous text becomes on every way into the project: the table of docs/preparation.md."""

import json
from pathlib import Path

import pytest

from convs2s.data.corpus import RawText, extract_corpus
from convs2s.files.text import NO_MARK, read_line_pairs, write_lines
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.preparation import tokenize_file
from tests.conftest import Terminal
from tests.support.archives import FilesBelow
from tests.support.refusals import refusal, rows, says

LONG = "x" * 1_000_000
# A line; its words as training text, or why the filter drops its pair; its words in a test set.
HAZARDS = [
    *rows(r"""
a\0b => a b => ab
a\rb => ab => a b
a b\r => a b => a b
a\u2028b => a b => a b
a\x85b => a b => a b
\ufeffa b => a b => a b
a \ufeff b => a b => a \ufeff b
=> empty =>
\x20\t\x20 => empty =>
a ||| b => a &#124; &#124; &#124; b => a &#124; &#124; &#124; b
"""),
    [LONG, "long_word", LONG],
]
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

    for line, train, test in HAZARDS:
        write_lines(tmp_path / "own.en", [line, *OTHERS])
        extract_corpus(own_text(tmp_path), output=raw)
        pairs = list(zip([test, *OTHERS], TARGETS, strict=True))
        assert tokenized("moses_test") == pairs, line[:9]
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
        assert list(read_line_pairs(*clean)) == [*kept, *pairs[1:]], line[:9]


def test_translate(model: Path, run: Terminal) -> None:
    for line, _, test in HAZARDS:
        said = run("translate", model, "--json", text=f"{line}\nthe house\n".encode())
        answers = map(json.loads, said.split("\n")[:-1])
        tokens = [answer["source_tokens"] for answer in answers]
        assert tokens == [test.split(), ["the", "house"]], line[:9]


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
