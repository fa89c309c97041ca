"""Our BPE held to the output of subword-nmt's commands."""

from collections import Counter
from itertools import islice
from pathlib import Path

from convs2s.data.word_counts import count_words
from convs2s.files.text import read_lines, write_lines
from convs2s.text.bpe import Bpe, join
from tests.support.golden import golden_lines, plain_or_packed

GLOSSARIES = ["&apos;", "&quot;", "[A-Z][a-z]+"]


def codes_of(path: Path) -> str:
    """Return the content of a file of BPE codes."""
    return path.read_bytes().decode("utf-8")


def first_merges(codes: str, merges: int) -> str:
    """Return codes with so many of their merges, as of ``apply_bpe.py --merges``."""
    return "".join(codes.splitlines(keepends=True)[: merges + 1])


def vocabulary(folder: Path, language: str) -> Counter[str]:
    """Return how often each token occurs in the training text, as subword-nmt counted."""
    pairs = (line.split(" ") for line in golden_lines(folder, f"vocab.{language}"))
    return Counter({token: int(count) for token, count in pairs})


def frequent_tokens(folder: Path, language: str) -> set[str]:
    """Return what ``--vocabulary-threshold 50`` leaves."""
    return {
        token for token, count in vocabulary(folder, language).items() if count >= 50
    }


def assert_splits(folder: Path, name: str, option: str, bpe: Bpe) -> None:
    """Compare the tokens of ``in.NAME`` with apply-bpe's by an option, and join them again."""
    part, language = name.split(".")
    given = golden_lines(folder, f"in.{name}")
    wanted = golden_lines(folder, f"out.{part}{option}.{language}")
    # subword-nmt keeps the blanks at both ends of a line.
    assert [bpe.split(line) for line in given] == [line.strip(" \r") for line in wanted]
    assert [join(line) for line in wanted] == given


def word_tables(text: Path, folder: Path, starts: list[int], length: int) -> list[Path]:
    """Count the words of parts of a text; return the tables."""
    paths = [folder / f"{text.name}.{start}.tsv" for start in starts]
    for start, path in zip(starts, paths, strict=True):
        part = folder / f"{text.name}.{start}"
        write_lines(part, islice(read_lines(text), start, start + length))
        count_words(text=part, output=path)
    return paths


def training_text(folder: Path, language: str) -> Path:
    """Return the text that the codes were learned from."""
    return plain_or_packed(folder, f"train.tok.{language}")
