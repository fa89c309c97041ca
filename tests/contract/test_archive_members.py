"""Files and members of archives, read as a stream whatever compressed them."""

import gzip
from pathlib import Path

import pytest

from convs2s.download.archives import is_archive, open_member
from tests.support.archives import COMPRESS, TEXT, make_archive, noise, read


def test_compressed_files_and_members(tmp_path: Path) -> None:
    """Several streams end to end are one file."""
    for suffix, compress in COMPRESS.items():
        packed = compress(TEXT)
        file = tmp_path / f"one.en{suffix}"
        file.write_bytes(packed + packed)
        assert read(file) == TEXT + TEXT
        for archive in ("a.tar", "a.zip"):
            path = make_archive(tmp_path / archive, {file.name: packed})
            assert read(path, file.name) == TEXT
    # Zeros after the end of gzip are no garbage.
    file = tmp_path / "ONE.EN.GZ"
    file.write_bytes(gzip.compress(TEXT) + bytes(2048))
    assert read(file) == TEXT


def test_members(tmp_path: Path) -> None:
    """A suffix may stand in capitals."""
    members = {"a/one.en": TEXT, "a/two.en": TEXT[::-1]}
    for suffix in ("tar", "TGZ", "tar.bz2", "tbz2", "txz", "tar.zst", "ZIP"):
        path = make_archive(tmp_path / f"a.{suffix}", members)
        assert is_archive(path)
        assert read(path, "a/one.en") == TEXT
        assert read(path, "./a//two.en") == TEXT[::-1]
        # What its reader raises passes through.
        with pytest.raises(OSError, match="mine"), open_member(path, "a/one.en"):
            raise OSError("mine")


def test_a_reader_of_the_first_lines_does_not_wait_for_the_rest(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.tar", {"one": TEXT, "two": noise(9000)})
    path.write_bytes(path.read_bytes()[:8000])
    with open_member(path, "one") as stream:
        assert stream.readline() == TEXT.splitlines(keepends=True)[0]
