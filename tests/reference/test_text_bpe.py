"""BPE against the output of subword-nmt's own commands."""

from collections import Counter
from pathlib import Path

import pytest

from convs2s.data.dataset import learn_bpe
from convs2s.data.word_counts import added_counts, count_words
from convs2s.files.text import write_lines
from convs2s.text.bpe import Bpe, count_tokens, join
from tests.support.golden import DATA, golden_lines

FOLDER = DATA / "bpe"


def codes_of(name: str) -> str:
    return (FOLDER / name).read_bytes().decode("utf-8")


CODES = codes_of("codes.2000")


def vocabulary(language: str) -> Counter[str]:
    """Return how often each token occurs in the training text, as subword-nmt counted."""
    pairs = (line.split(" ") for line in golden_lines(FOLDER, f"vocab.{language}"))
    return Counter({token: int(count) for token, count in pairs})


def splitter(option: str, language: str) -> Bpe:
    """Return what splits as apply-bpe does with an option of the names of its output."""
    if option == "vt50":
        counts = vocabulary(language)
        return Bpe(CODES, {token for token, count in counts.items() if count >= 50})
    if option == "gloss":
        return Bpe(CODES, glossaries=["&apos;", "&quot;", "[A-Z][a-z]+"])
    if option == "merges500":
        return Bpe("".join(CODES.splitlines(keepends=True)[:501]))
    return Bpe(codes_of("codes.fr.500") if option == "fr500" else CODES)


def test_split_is_apply_bpe_and_join_undoes_it() -> None:
    names = {path.name.removesuffix(".gz") for path in FOLDER.glob("out.*")}
    assert len(names) == 12
    for name in names:
        _, part, *option, language = name.split(".")
        bpe = splitter("".join(option), language)
        given = golden_lines(FOLDER, f"in.{part}.{language}")
        wanted = golden_lines(FOLDER, name)
        found = [bpe.split(line) for line in given]
        # subword-nmt keeps the blanks at both ends of a line.
        assert found == [line.strip(" \r") for line in wanted], name
        assert [join(line) for line in wanted] == given


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """How often each word of our training text occurs: tables of two parts of each language."""
    folder = tmp_path_factory.mktemp("words")
    tables: dict[str, list[Path]] = {"en": [], "fr": []}
    for language, of_language in tables.items():
        lines = golden_lines(FOLDER, f"train.tok.{language}")
        for number, part in enumerate((lines[:6000], lines[6000:])):
            text = folder / f"{language}{number}"
            write_lines(text, part)
            of_language.append(text.with_suffix(".tsv"))
            count_words(text=text, output=of_language[-1])
    return tables


def test_token_counts_are_the_vocabulary(words: dict[str, list[Path]]) -> None:
    bpe = Bpe(CODES)
    for language, tables in words.items():
        assert count_tokens(added_counts(tables), bpe) == vocabulary(language)


def test_codes_are_those_learned_by_subword_nmt(
    words: dict[str, list[Path]], tmp_path: Path
) -> None:
    """The joint ones, and French ones of its own words."""
    for tables, merges, name in (
        ([*words["en"], *words["fr"]], 2000, "codes.2000"),
        (words["fr"], 500, "codes.fr.500"),
    ):
        learn_bpe(words=tables, output=tmp_path / "codes", merges=merges)
        assert (tmp_path / "codes").read_text("utf-8") == codes_of(name)
