"""BPE against the output of subword-nmt's own commands."""

from collections import Counter
from pathlib import Path

import pytest

from convs2s.data.dataset import learn_bpe
from convs2s.data.word_counts import added_counts, count_words
from convs2s.files.text import write_lines
from convs2s.text.bpe import Bpe, count_tokens, join
from tests.support.golden import golden_lines

JOINT = {"data": "codes.2000", "golden": "codes.8000"}
OUTPUTS = {"data": 12, "golden": 16}


def codes_of(golden: Path, name: str = "") -> str:
    """Return the content of a file of codes, the joint ones unless another is named."""
    path = golden / "bpe" / (name or JOINT[golden.name])
    return path.read_bytes().decode("utf-8")


def vocabulary(golden: Path, language: str) -> Counter[str]:
    """Return how often each token occurs in the training text, as subword-nmt counted."""
    lines = golden_lines(golden / "bpe", f"vocab.{language}")
    pairs = (line.split(" ") for line in lines)
    return Counter({token: int(count) for token, count in pairs})


def splitter(golden: Path, option: str, language: str) -> Bpe:
    """Return what splits as apply-bpe does with an option of the names of its output."""
    codes = codes_of(golden)
    if option == "vt50":
        counts = vocabulary(golden, language)
        frequent = {token for token, count in counts.items() if count >= 50}
        return Bpe(codes, frequent)
    if option == "gloss":
        return Bpe(codes, glossaries=["&apos;", "&quot;", "[A-Z][a-z]+"])
    if option.startswith("merges"):
        lines = codes.splitlines(keepends=True)
        merges = int(option.removeprefix("merges"))
        return Bpe("".join(lines[: merges + 1]))
    return Bpe(codes_of(golden, "codes.fr.500") if option == "fr500" else codes)


def test_split_is_apply_bpe_and_join_undoes_it(golden: Path) -> None:
    folder = golden / "bpe"
    names = {path.name.removesuffix(".gz") for path in folder.glob("out.*")}
    assert len(names) == OUTPUTS[golden.name]
    for name in names:
        _, part, *option, language = name.split(".")
        bpe = splitter(golden, "".join(option), language)
        given = golden_lines(folder, f"in.{part}.{language}")
        wanted = golden_lines(folder, name)
        found = [bpe.split(line) for line in given]
        # subword-nmt keeps the blanks at both ends of a line.
        assert found == [line.strip(" \r") for line in wanted], name
        assert [join(line) for line in wanted] == given


@pytest.fixture(scope="session")
def words(
    golden: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Path]]:
    """How often each word of the training text occurs: tables of two parts of each language."""
    folder = tmp_path_factory.mktemp("words")
    tables: dict[str, list[Path]] = {}
    for language in ("en", "fr" if golden.name == "data" else "de"):
        lines = golden_lines(golden / "bpe", f"train.tok.{language}")
        tables[language] = []
        for number, part in enumerate((lines[:6000], lines[6000:])):
            text = folder / f"{language}{number}"
            write_lines(text, part)
            count_words(text=text, output=text.with_suffix(".tsv"))
            tables[language].append(text.with_suffix(".tsv"))
    return tables


def test_token_counts_are_the_vocabulary(
    golden: Path, words: dict[str, list[Path]]
) -> None:
    for language, tables in words.items():
        counted = count_tokens(added_counts(tables), Bpe(codes_of(golden)))
        assert counted == vocabulary(golden, language)


def test_codes_are_those_learned_by_subword_nmt(
    golden: Path, words: dict[str, list[Path]], tmp_path: Path
) -> None:
    """All joint ones, or of real text the first; of the other language's words its own."""
    joint = [table for tables in words.values() for table in tables]
    merges = 2000 if golden.name == "data" else 300
    learn_bpe(words=joint, output=tmp_path / "codes", merges=merges)
    expected = codes_of(golden).splitlines(keepends=True)[: merges + 1]
    assert (tmp_path / "codes").read_text("utf-8") == "".join(expected)
    if golden.name == "data":
        learn_bpe(words=words["fr"], output=tmp_path / "codes", merges=500)
        found = (tmp_path / "codes").read_text("utf-8")
        assert found == codes_of(golden, "codes.fr.500")
