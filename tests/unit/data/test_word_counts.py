"""Tables of word counts."""

import errno
import os
from collections import Counter
from pathlib import Path
from typing import NoReturn

import pytest

from convs2s.data.vocabulary import read_counts
from convs2s.data.word_counts import added_counts, count_words
from convs2s.errors import UserError
from convs2s.files import atomic
from convs2s.files.text import write_lines


def test_words_are_counted_and_sorted(tmp_path: Path) -> None:
    words = [f"w{number * 7 % 101}" for number in range(601)]
    lines = [" ".join(words[start : start + 7]) for start in range(0, len(words), 7)]
    write_lines(tmp_path / "text", lines)
    count_words(text=tmp_path / "text", output=tmp_path / "counts")
    assert list(read_counts(tmp_path / "counts")) == sorted(Counter(words).items())


def test_the_counts_of_parts_add_up_to_those_of_the_whole(tmp_path: Path) -> None:
    words = [f"w{number * 7 % 101}" for number in range(601)]
    tables = []
    for part, length in enumerate((0, 1, 100, 601)):
        write_lines(tmp_path / "text", words[:length])
        tables.append(tmp_path / f"counts{part}")
        count_words(text=tmp_path / "text", output=tables[part])
    total = Counter(words[:1]) + Counter(words[:100]) + Counter(words)
    assert list(added_counts(tables)) == sorted(total.items())


def test_a_disk_without_room_for_a_folder_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_lines(tmp_path / "text", ["a b"])
    monkeypatch.setattr(atomic, "mkdtemp", full)
    with pytest.raises(
        UserError, match="counts: cannot be written: No space left on device"
    ):
        count_words(text=tmp_path / "text", output=tmp_path / "counts")
