"""Text files that are cut, damaged, or made to take all memory."""

import bz2
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from convs2s.decoding.long_files import growing_output
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from tests.support.damage import bits, flipped

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
LINES = [f"line {number} has {number * number} words" for number in range(300)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_flipped_bit_of_our_own_files_is_noticed_or_changes_no_line(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"text{suffix}"
    write_lines(path, LINES)
    content = path.read_bytes()
    noticed = 0
    for bit in bits(content, 200):
        path.write_bytes(flipped(content, bit))
        try:
            assert list(read_lines(path)) == LINES, bit
        except UserError:
            noticed += 1
    assert noticed > 180


def test_a_flipped_bit_of_a_long_translation_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "text.zst"
    with growing_output(path, {}) as output:
        output.append("".join(f"{line}\n" for line in LINES), len(LINES))
    content = path.read_bytes()
    path.write_bytes(flipped(content, 8 * (len(content) // 2)))
    with pytest.raises(UserError, match=r"text\.zst: damaged"):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_cut_file_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    write_lines(path, LINES)
    content = path.read_bytes()
    for length in range(1, len(content), 37):
        path.write_bytes(content[:length])
        with pytest.raises(UserError, match=rf"text{suffix}: (truncated|damaged)"):
            list(read_lines(path))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        # 785 bytes, say, for 2 GB.
        ("text.bz2", lambda: bz2.compress(bytes(45 << 20)) * 20),
        ("text.zst", lambda: zstandard.ZstdCompressor().compress(bytes(200 << 20))),
    ],
)
def test_a_bomb_read_as_a_line_takes_little_memory(
    tmp_path: Path, name: str, make: Callable[[], bytes]
) -> None:
    path = tmp_path / name
    path.write_bytes(make())
    tracemalloc.start()
    try:
        with pytest.raises(
            UserError, match=rf"{name}:1: a line of more than 16777216 bytes"
        ):
            list(read_lines(path))
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("before", [0, 1, 5000])
def test_an_overlong_line_is_named(tmp_path: Path, before: int) -> None:
    path = tmp_path / "text"
    path.write_bytes(
        b"short line of text\n" * before + b"x" * ((16 << 20) + 1) + b"\nshort\n"
    )
    with pytest.raises(
        UserError, match=rf"text:{before + 1}: a line of more than 16777216 bytes"
    ):
        list(read_lines(path))
    path.write_bytes(
        b"short line of text\n" * before + b"x" * (16 << 20) + b"\nshort\n"
    )
    assert len(list(read_lines(path))) == before + 2


def test_lines_are_those_between_line_feeds(tmp_path: Path) -> None:
    generator = random.Random(1)
    texts = ["", "\r", "\u2028", "é" * 70_000, "word " * 9000, "\x85\f", "\ufeff"]
    lines = [generator.choice(texts) for _ in range(60)]
    path = tmp_path / "text"
    for end in ("", "\n"):
        path.write_text("\ufeff" + "\n".join(lines) + end, "utf-8", newline="")
        expected = lines if end or lines[-1] else lines[:-1]
        assert list(read_lines(path)) == expected


def test_text_of_windows_is_told_from_that_of_one_byte_a_letter(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("The cat.\n", "utf-16")
    advice = r"text:1: not UTF-8: .* iconv -f UTF-16 -t UTF-8, or if .* ends in \.gz, \.bz2, \.xz"
    with pytest.raises(UserError, match=advice):
        list(read_lines(path))


def test_lines_before_a_fault_are_still_given(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"one\ntwo\n\xff\nfour\n")
    lines = read_lines(path)
    assert [next(lines), next(lines)] == ["one", "two"]
    with pytest.raises(UserError, match="text:3: not UTF-8: byte 0xff at column 1"):
        next(lines)
