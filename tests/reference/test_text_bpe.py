"""BPE against the output of subword-nmt's own commands."""

from pathlib import Path

import pytest

from convs2s.data.dataset import learn_bpe
from convs2s.data.word_counts import added_counts
from convs2s.text.bpe import Bpe, count_tokens
from tests.support import subword_nmt
from tests.support.golden import DATA

GOLDEN = DATA / "bpe"
JOINT, FRENCH = (
    subword_nmt.codes_of(GOLDEN / name) for name in ("codes.2000", "codes.fr.500")
)
LANGUAGES = ["en", "fr"]
NAMES = ["demo.en", "demo.fr", "hazard.en", "hazard.fr"]


@pytest.mark.parametrize("name", NAMES)
def test_split_is_apply_bpe(name: str) -> None:
    subword_nmt.assert_splits(GOLDEN, name, "", Bpe(JOINT))


@pytest.mark.parametrize("name", NAMES)
def test_vocabulary_threshold(name: str) -> None:
    frequent = subword_nmt.frequent_tokens(GOLDEN, name.split(".")[1])
    subword_nmt.assert_splits(GOLDEN, name, ".vt50", Bpe(JOINT, frequent))


@pytest.mark.parametrize("name", ["demo.en", "hazard.en"])
def test_glossaries(name: str) -> None:
    bpe = Bpe(JOINT, glossaries=subword_nmt.GLOSSARIES)
    subword_nmt.assert_splits(GOLDEN, name, ".gloss", bpe)


def test_fewer_merges() -> None:
    bpe = Bpe(subword_nmt.first_merges(JOINT, 500))
    subword_nmt.assert_splits(GOLDEN, "demo.en", ".merges500", bpe)


def test_codes_of_one_language() -> None:
    subword_nmt.assert_splits(GOLDEN, "demo.fr", ".fr500", Bpe(FRENCH))


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """How often each word of the training text occurs: tables of two parts of each language."""
    folder = tmp_path_factory.mktemp("words")
    return {
        language: subword_nmt.word_tables(
            subword_nmt.training_text(GOLDEN, language), folder, [0, 6000], 6000
        )
        for language in LANGUAGES
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_token_counts_are_the_vocabulary(
    words: dict[str, list[Path]], language: str
) -> None:
    counted = count_tokens(added_counts(words[language]), Bpe(JOINT))
    assert counted == subword_nmt.vocabulary(GOLDEN, language)


def test_joint_codes_are_learn_joint_bpe(
    words: dict[str, list[Path]], tmp_path: Path
) -> None:
    learn_bpe(
        words=[*words["en"], *words["fr"]], output=tmp_path / "codes", merges=2000
    )
    assert (tmp_path / "codes").read_text("utf-8") == JOINT


def test_codes_of_one_language_are_learn_bpe(
    words: dict[str, list[Path]], tmp_path: Path
) -> None:
    learn_bpe(words=words["fr"], output=tmp_path / "codes", merges=500)
    assert (tmp_path / "codes").read_text("utf-8") == FRENCH
