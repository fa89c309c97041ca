"""BPE of real text against the output of subword-nmt's own commands."""

from pathlib import Path

import pytest

from convs2s.data.dataset import learn_bpe
from convs2s.data.word_counts import added_counts
from convs2s.text.bpe import Bpe, count_tokens
from tests.support import subword_nmt

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


@pytest.fixture(scope="module")
def golden(shared: Path) -> Path:
    return shared / "golden" / "bpe"


@pytest.fixture(scope="module")
def codes(golden: Path) -> str:
    return subword_nmt.codes_of(golden / "codes.8000")


@pytest.mark.parametrize("name", NAMES)
def test_split_is_apply_bpe(golden: Path, codes: str, name: str) -> None:
    subword_nmt.assert_splits(golden, name, "", Bpe(codes))


@pytest.mark.parametrize("name", NAMES)
def test_vocabulary_threshold(golden: Path, codes: str, name: str) -> None:
    frequent = subword_nmt.frequent_tokens(golden, name.split(".")[1])
    subword_nmt.assert_splits(golden, name, ".vt50", Bpe(codes, frequent))


def test_glossaries(golden: Path, codes: str) -> None:
    bpe = Bpe(codes, glossaries=subword_nmt.GLOSSARIES)
    subword_nmt.assert_splits(golden, "news300.en", ".gloss", bpe)


def test_fewer_merges(golden: Path, codes: str) -> None:
    bpe = Bpe(subword_nmt.first_merges(codes, 2000))
    subword_nmt.assert_splits(golden, "train1000.en", ".merges2000", bpe)


@pytest.fixture(scope="module")
def words(
    golden: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Path]]:
    """How often each word of the training text occurs: tables of three parts of each language."""
    folder = tmp_path_factory.mktemp("words")
    return {
        language: subword_nmt.word_tables(
            subword_nmt.training_text(golden, language),
            folder,
            [0, 10_000, 20_000],
            10_000,
        )
        for language in LANGUAGES
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_token_counts_are_the_vocabulary(
    golden: Path, codes: str, words: dict[str, list[Path]], language: str
) -> None:
    counted = count_tokens(added_counts(words[language]), Bpe(codes))
    assert counted == subword_nmt.vocabulary(golden, language)


@pytest.mark.parametrize("merges", [300, pytest.param(8000, marks=pytest.mark.slow)])
def test_joint_codes_are_learn_joint_bpe(
    codes: str, words: dict[str, list[Path]], tmp_path: Path, merges: int
) -> None:
    learn_bpe(
        words=[*words["en"], *words["de"]], output=tmp_path / "codes", merges=merges
    )
    first = codes.split("\n")[: 1 + merges]
    assert (tmp_path / "codes").read_text("utf-8") == "\n".join(first) + "\n"
