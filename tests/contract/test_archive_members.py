"""Files and members of archives, read as a stream whatever compressed them."""

import gzip
from pathlib import Path

import pytest

from convs2s.download.archives import is_archive, open_member
from tests.support.archives import COMPRESS, TEXT, make_archive, noise, read

MEMBERS = {"a/one.en": TEXT, "a/two.en": TEXT[::-1]}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files_and_members(tmp_path: Path, suffix: str) -> None:
    """Several streams end to end are one file, and zeros after gzip's are no garbage."""
    packed = COMPRESS[suffix](TEXT)
    name = f"one.en{suffix}"
    for content, expected in (
        (packed, TEXT),
        (packed + COMPRESS[suffix](b"more\n"), TEXT + b"more\n"),
    ):
        (tmp_path / name).write_bytes(content)
        assert read(tmp_path / name) == expected
    for archive in ("a.tar", "a.zip"):
        assert read(make_archive(tmp_path / archive, {name: packed}), name) == TEXT
    (tmp_path / "ONE.EN.GZ").write_bytes(gzip.compress(TEXT) + bytes(2048))
    assert read(tmp_path / "ONE.EN.GZ") == TEXT
    (tmp_path / "one.en").write_bytes(TEXT)
    assert read(tmp_path / "one.en") == TEXT


@pytest.mark.parametrize(
    "name", ["tar", "tgz", "tar.bz2", "tbz2", "txz", "tar.zst", "zip"]
)
def test_members(tmp_path: Path, name: str) -> None:
    """A suffix may stand in capitals."""
    for path in (tmp_path / f"a.{name}", tmp_path / f"B.{name.upper()}"):
        make_archive(path, MEMBERS)
        assert is_archive(path)
        assert read(path, "a/one.en") == TEXT
        assert read(path, "./a//two.en") == TEXT[::-1]


def test_a_reader_of_the_first_lines_does_not_wait_for_the_rest(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.tar", {"one": TEXT, "two": noise(9000)})
    path.write_bytes(path.read_bytes()[:8000])
    with open_member(path, "one") as stream:
        assert stream.readline() == TEXT.splitlines(keepends=True)[0]


def test_the_readers_own_errors_pass_through(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.tgz", MEMBERS)
    with pytest.raises(OSError, match="mine"), open_member(path, "a/one.en"):
        raise OSError("mine")
