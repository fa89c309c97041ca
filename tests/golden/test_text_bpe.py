"""BPE against the output of subword-nmt's own commands."""

from collections import Counter
from pathlib import Path

import pytest

from convs2s.data.dataset import learn_bpe
from convs2s.data.word_counts import added_counts, count_words
from convs2s.files import read_lines
from convs2s.text.bpe import Bpe, count_tokens, join


@pytest.fixture(scope="module")
def golden(shared: Path) -> Path:
    return shared / "golden" / "bpe"


@pytest.fixture(scope="module")
def codes(golden: Path) -> str:
    return (golden / "codes.8000").read_bytes().decode("utf-8")


def vocabulary(golden: Path, language: str) -> Counter[str]:
    pairs = (line.split(" ") for line in read_lines(golden / f"vocab.{language}"))
    return Counter({token: int(count) for token, count in pairs})


def assert_splits(golden: Path, name: str, option: str, bpe: Bpe) -> None:
    part, language = name.split(".")
    given = list(read_lines(golden / f"in.{name}"))
    wanted = list(read_lines(golden / f"out.{part}{option}.{language}"))
    assert [bpe.split(line) for line in given] == wanted
    assert [join(line) for line in wanted] == given


LANGUAGES = ["en", "de"]
NAMES = [
    "nasty190.en",
    "news300.de",
    "news300.en",
    "test2016.de",
    "test2016.en",
    "train1000.de",
    "train1000.en",
]


@pytest.mark.parametrize("name", NAMES)
def test_split_is_apply_bpe(golden: Path, codes: str, name: str) -> None:
    assert_splits(golden, name, "", Bpe(codes))


@pytest.mark.parametrize("name", NAMES)
def test_vocabulary_threshold(golden: Path, codes: str, name: str) -> None:
    counts = vocabulary(golden, name.split(".")[1])
    frequent = {token for token, count in counts.items() if count >= 50}
    assert_splits(golden, name, ".vt50", Bpe(codes, frequent))


def test_glossaries(golden: Path, codes: str) -> None:
    glossaries = ["&apos;", "&quot;", "[A-Z][a-z]+"]
    assert_splits(golden, "news300.en", ".gloss", Bpe(codes, glossaries=glossaries))


def test_fewer_merges(golden: Path, codes: str) -> None:
    assert_splits(golden, "train1000.en", ".merges2000", Bpe(codes, merges=2000))


@pytest.fixture(scope="module")
def words(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """How often each word of the training text occurs: three shards' tables of each language."""
    folder = tmp_path_factory.mktemp("words")
    tables = {
        language: [folder / f"{n}.{language}.tsv" for n in range(3)] for language in LANGUAGES
    }
    for language, paths in tables.items():
        for start, path in zip((0, 10_000, 20_000), paths, strict=True):
            rows = range(start, start + 10_000)
            count_words(text=golden / f"train.tok.{language}", rows=rows, output=path)
    return tables


@pytest.mark.parametrize("language", LANGUAGES)
def test_token_counts_are_the_vocabulary(
    golden: Path, codes: str, words: dict[str, list[Path]], language: str
) -> None:
    counted = count_tokens(added_counts(words[language]), Bpe(codes))
    assert counted == vocabulary(golden, language)


@pytest.mark.parametrize("merges", [300, pytest.param(8000, marks=pytest.mark.slow)])
def test_joint_codes_are_learn_joint_bpe(
    codes: str, words: dict[str, list[Path]], tmp_path: Path, merges: int
) -> None:
    learn_bpe(words=[*words["en"], *words["de"]], output=tmp_path / "codes", merges=merges)
    first = codes.split("\n")[: 1 + merges]
    assert (tmp_path / "codes").read_text("utf-8") == "\n".join(first) + "\n"
