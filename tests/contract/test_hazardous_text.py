"""What hazardous text becomes on every way into the project: the table of docs/preparation.md."""

import json
from pathlib import Path

from convs2s.data.corpus import RawText, extract_corpus
from convs2s.files.text import NO_MARK, read_line_pairs, write_lines
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.preparation import tokenize_file
from tests.conftest import Terminal
from tests.support.archives import FilesBelow
from tests.support.refusals import rows

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


def sides(folder: Path, stage: str) -> tuple[Path, Path]:
    return folder / f"{stage}.en.zst", folder / f"{stage}.fr.zst"


def test_text_of_a_corpus(tmp_path: Path) -> None:
    raw, words, clean = (sides(tmp_path, stage) for stage in ("raw", "tok", "clean"))
    source, target = str(tmp_path / "own.en"), str(tmp_path / "own.fr")
    text = RawText([(source, target)], FilesBelow(tmp_path))
    write_lines(target, TARGETS)

    def tokenized(name: str) -> list[tuple[str, str]]:
        for side, output, language in zip(raw, words, ("en", "fr"), strict=True):
            tokenize_file(raw=side, output=output, name=name, language=language)
        return list(read_line_pairs(*words, mark=NO_MARK))

    for line, train, test in HAZARDS:
        write_lines(source, [line, *OTHERS])
        extract_corpus(text, output=raw)
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
