"""The shipped text is the pinned one, is written as it is, and is missed where it is damaged."""

import lzma
from pathlib import Path

import pytest

from convs2s.demo import corpus as demo
from convs2s.demo.corpus import CORPUS_SHA256, DATA, read_demo_corpus, write_demo_corpus
from convs2s.errors import UserError
from convs2s.files.text import read_line_pairs

SIZES = {
    "en_fr": {"train": 12_000, "valid": 500, "test": 500},
    "clauses_en_fr": {
        "train": 8_000,
        "valid": 250,
        "test_filtered": 250,
        "test_rest": 50,
    },
}


@pytest.mark.parametrize("name", SIZES)
def test_the_shipped_text_is_written_whole(tmp_path: Path, name: str) -> None:
    splits = read_demo_corpus(name)
    assert {split: len(pairs) for split, pairs in splits.items()} == SIZES[name]
    write_demo_corpus(tmp_path, name)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{split}.{language}" for split in splits for language in ("en", "fr")
    }
    for split, pairs in splits.items():
        written = read_line_pairs(tmp_path / f"{split}.en", tmp_path / f"{split}.fr")
        assert list(written) == pairs


def test_every_corpus_is_pinned() -> None:
    assert {path.name for path in DATA.iterdir()} == {
        f"{name}.txt.xz" for name in CORPUS_SHA256
    }
    assert set(CORPUS_SHA256) == set(SIZES)


def test_a_damaged_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "DATA", tmp_path)
    file = tmp_path / "en_fr.txt.xz"
    with pytest.raises(UserError, match=rf"{file}: .*; install convs2s again"):
        read_demo_corpus()
    whole = (DATA / file.name).read_bytes()
    for content in (whole[:5000], lzma.compress(b"train\na\nb\n")):
        file.write_bytes(content)
        with pytest.raises(UserError, match=rf"{file}: .*; install convs2s again"):
            read_demo_corpus()
