"""Files that appear under their names whole or not at all."""

import errno
from pathlib import Path

import pytest

from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path
from convs2s.files.compressed import decompressed_file
from tests.support.systems import READS_PROC


def test_a_file_gets_its_name_in_one_step(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "out") as temporary:
        temporary.write_text("whole")
        written = temporary.stat().st_ino
    # renamed: a copy could be seen half done.
    assert (tmp_path / "out").stat().st_ino == written
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def write_half(path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt


def test_a_block_that_fails_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("before")
    with pytest.raises(KeyboardInterrupt):
        write_half(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@READS_PROC
def test_a_disk_that_fails_is_that_of_the_file_on_it(tmp_path: Path) -> None:
    part, output = tmp_path / "part", tmp_path / "out"
    part.symlink_to("/proc/self/mem")  # can be opened; its first byte cannot be read
    with (
        pytest.raises(UserError) as error,
        atomic_path(output),
        decompressed_file(part) as stream,
    ):
        stream.read(1)
    assert str(error.value) == f"{part}: cannot be read: Input/output error"
    part.unlink()
    part.touch()
    with (
        pytest.raises(UserError) as error,
        atomic_path(output),
        decompressed_file(part),
    ):
        raise OSError(errno.EIO, "Input/output error")  # of what is written meanwhile
    assert str(error.value).startswith(
        f"{output}: cannot be written: Input/output error"
    )
