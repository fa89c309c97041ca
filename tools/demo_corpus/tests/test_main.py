"""What is shipped is written anew, byte for byte once it is decompressed."""

import hashlib
import lzma
from pathlib import Path

import pytest

from convs2s.demo.corpus import CORPUS_SHA256
from demo_corpus.__main__ import GENERATORS, write_shipped_text


def test_the_text_has_the_pinned_checksums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_shipped_text(tmp_path)
    printed = capsys.readouterr().out
    for name, checksum in CORPUS_SHA256.items():
        text = lzma.decompress((tmp_path / f"{name}.txt.xz").read_bytes())
        assert hashlib.sha256(text).hexdigest() == checksum
        assert f'"{name}": "{checksum}",' in printed
    assert set(GENERATORS) == set(CORPUS_SHA256)
