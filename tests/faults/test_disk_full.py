"""Writers on a disk that fills up: one line, what stood there before, and nothing beside."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch

from convs2s.data.corpus import RawText, cut_text, extract_corpus, join_training_text
from convs2s.data.store import write_store
from convs2s.data.word_counts import count_words
from convs2s.decoding.long_files import growing_output
from convs2s.errors import UserError
from convs2s.files.atomic import PREFIX
from convs2s.files.checksums import sha256
from convs2s.files.tensors import save_tensors
from convs2s.files.text import write_json, write_lines
from convs2s.interop.fairseq import import_released
from convs2s.mirror.write import write_mirror
from convs2s.publish.results import export_results
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.truecase import learn_truecaser, truecase_file
from convs2s.training.run import train
from tests.support import tiny
from tests.support.alignments import dictionary_of
from tests.support.limits import files_of_at_most
from tests.support.local_files import FilesBelow

ROOM = 20_000
"""Bytes that a file may have: enough for headers, too few for what is written here."""

GENERATOR = random.Random(1)
WORDS = [f"W{GENERATOR.randbytes(6).hex()}" for _ in range(9000)]
LINES = [" ".join(WORDS[start : start + 9]) for start in range(0, len(WORDS), 9)]
PAIRS = list(zip(LINES, LINES, strict=True))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    for name in ("a.en", "a.fr"):
        write_lines(folder / name, LINES)
    write_lines(
        folder / "links", (" ".join(f"{i}-{i}" for i in range(9)) for _ in LINES)
    )
    count_words(text=folder / "a.en", output=folder / "words.tsv")
    (folder / "filtered").mkdir()
    filtered(PAIRS, folder / "filtered")
    learn_truecaser(text=folder / "a.en", output=folder / "truecaser.tsv")
    tiny.prepare(folder / "task")
    scores = folder / "results/test.bleu.json"
    digest = {str(folder / "a.en"): sha256(folder / "a.en")}
    write_json(scores, {"manifest": {"sha256": digest}, "lines": LINES})
    return folder


def growing(_: Path, output: Path) -> None:
    with growing_output(output / "a.txt", {}) as stream:
        stream.append("".join(f"{line}\n" for line in LINES), len(LINES))


def filtered(pairs: Iterable[tuple[str, str]], folder: Path) -> tuple[Path, Path, Path]:
    """Filter pairs; return both sides and the report."""
    source, target, report = (folder / f"a.{end}" for end in ("en", "fr", "json"))
    sides = source, target
    tokenize_and_filter(
        pairs, sides=sides, report=report, minimum=1, maximum=None, ratio=None
    )
    return source, target, report


def joined(inputs: Path, output: Path) -> None:
    join_training_text(
        parts=[(inputs / "a.en", inputs / "a.fr")] * 2,
        reports=[inputs / "filtered/a.json"] * 2,
        sides=(output / "a.en", output / "a.fr"),
        report=output / "a.json",
    )


def released(inputs: Path, output: Path) -> None:
    import_released(
        references=dict.fromkeys(("model", "source_dictionary"), str(inputs / "a.en")),
        files=FilesBelow(inputs),
        output=output / "model.safetensors",
        task="tiny",
        languages={"source": "en", "target": "fr"},
        preparation="moses_test",
    )


def archive(inputs: Path, output: Path) -> None:
    export_results(inputs / "results", output / "a.zip", with_text=True)


Writer = Callable[[Path, Path], object]

WRITERS: dict[str, Writer] = {
    "text": lambda _, out: write_lines(out / "a.txt", LINES),
    "gzip": lambda _, out: write_lines(out / "a.gz", LINES),
    "bzip2": lambda _, out: write_lines(out / "a.bz2", LINES),
    "xz": lambda _, out: write_lines(out / "a.xz", LINES),
    "Zstandard": lambda _, out: write_lines(out / "a.zst", LINES * 9),
    "JSON": lambda _, out: write_json(out / "a.json", LINES),
    "token store": lambda _, out: write_store(out / "a.arrow", [([5] * 99, [1])] * 500),
    "tensors": lambda _, out: save_tensors(out / "a", {"a": torch.ones(9999)}, {}),
    "growing output": growing,
    "extracted corpus": lambda inp, out: extract_corpus(
        RawText([(str(inp / "a.en"), str(inp / "a.fr"))], FilesBelow(inp)),
        output=(out / "a.en", out / "a.fr"),
    ),
    "cut text": lambda inp, out: cut_text(
        source=inp / "a.en", target=inp / "a.fr", outputs=[(out / "0.en", out / "0.fr")]
    ),
    "joined text": joined,
    "filtered corpus": lambda _, out: filtered(PAIRS, out),
    "word counts": lambda inp, out: count_words(
        text=inp / "a.en", output=out / "a.tsv"
    ),
    "vocabulary": lambda inp, out: tiny.build_word_vocabulary(
        inp / "words.tsv", out / "a.tsv"
    ),
    "dictionary": lambda inp, out: dictionary_of(
        (inp / "a.en", inp / "a.fr"), inp / "links", out
    ),
    "truecased text": lambda inp, out: truecase_file(
        text=inp / "a.en", truecaser=inp / "truecaser.tsv", output=out / "a.en"
    ),
    "training": lambda inp, out: train(
        tiny.job(inp / "task", out / "model.safetensors")
    ),
    "released model": released,
    "archive of results": archive,
    "mirror": lambda _, out: write_mirror(out),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_fills_up_is_one_line_and_leaves_nothing(
    inputs: Path, tmp_path: Path, name: str
) -> None:
    output = tmp_path / "output"
    output.mkdir()
    (output / "a.zst").write_text("before")
    with (
        files_of_at_most(ROOM),
        pytest.raises(UserError, match=r"cannot be written: .*make room") as raised,
    ):
        WRITERS[name](inputs, output)
    assert str(output) in str(raised.value)
    left = [path for path in output.rglob("*") if path.name.startswith(PREFIX)]
    assert left == []
    assert (output / "a.zst").read_text() == "before"
    assert {path.name for path in output.glob("a*")} <= {
        "a.zst",
        "a.txt.part",
        "a.txt.part.json",
    }
