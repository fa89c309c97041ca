"""The shipped text is the pinned one, is written as it is, and is missed where it is damaged."""

import lzma
from pathlib import Path

import pytest

from convs2s.demo.corpus import CORPUS_SHA256, DATA, read_demo_corpus, write_demo_corpus
from convs2s.files.text import read_line_pairs
from tests.support.refusals import refusal, says

SIZES = {
    "en_fr": "test 500, valid 500, train 12000",
    "clauses_en_fr": "test_filtered 250, test_rest 50, valid 250, train 8000",
}


def test_the_shipped_text_is_written_whole(tmp_path: Path) -> None:
    assert SIZES.keys() == CORPUS_SHA256.keys()
    for name, expected in SIZES.items():
        write_demo_corpus(tmp_path, name)
        sizes = []
        for split, pairs in read_demo_corpus(name).items():
            files = (tmp_path / f"{split}.{language}" for language in ("en", "fr"))
            assert list(read_line_pairs(*files)) == pairs
            sizes.append(f"{split} {len(pairs)}")
        assert ", ".join(sizes) == expected


def test_a_damaged_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convs2s.demo.corpus.DATA", tmp_path)
    file = tmp_path / "en_fr.txt.xz"
    whole = (DATA / file.name).read_bytes()
    for content in (None, whole[:5000], lzma.compress(b"train\na\nb\n")):
        if content is not None:
            file.write_bytes(content)
        says(refusal(read_demo_corpus), str(file), "install convs2s again")
