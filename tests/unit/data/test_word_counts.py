"""Tables of word counts that are put aside, however many there are."""

import errno
import os
from collections import Counter
from pathlib import Path
from typing import NoReturn

import pytest

from convs2s.data import word_counts
from convs2s.data.vocabulary import read_counts
from convs2s.data.word_counts import count_words
from convs2s.errors import UserError
from convs2s.files import atomic
from convs2s.files.text import write_lines
from tests.support.limits import open_files_of_at_most


@pytest.mark.parametrize("tables", [0, 1, 3, 4, 16, 21, 120])
def test_tables_that_are_put_aside_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: int
) -> None:
    words = [f"w{number * 7 % 101}" for number in range(5 * tables + 1)]
    write_lines(tmp_path / "text", words)
    count_words(text=tmp_path / "text", output=tmp_path / "at once")
    monkeypatch.setattr(word_counts, "_TYPES_IN_MEMORY", 5)
    monkeypatch.setattr(word_counts, "_TABLES_AT_ONCE", 4)
    with open_files_of_at_most(100):
        count_words(text=tmp_path / "text", output=tmp_path / "counts")
    assert list(read_counts(tmp_path / "counts")) == sorted(Counter(words).items())
    assert (tmp_path / "counts").read_bytes() == (tmp_path / "at once").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["at once", "counts", "text"]


def test_a_disk_without_room_for_a_folder_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_lines(tmp_path / "text", ["a b"])
    monkeypatch.setattr(atomic, "mkdtemp", full)
    with pytest.raises(UserError, match="counts: cannot be written: No space left on device"):
        count_words(text=tmp_path / "text", output=tmp_path / "counts")
