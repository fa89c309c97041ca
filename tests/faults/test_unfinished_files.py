"""Files that appear under their names whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path
from convs2s.files.compressed import decompressed_file
from convs2s.training.state_folder import ProgressFile
from tests.faults.systems import READS_PROC


def test_a_file_gets_its_name_in_one_step(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "out") as temporary:
        temporary.write_text("whole")
        written = temporary.stat().st_ino
    # renamed: a copy could be seen half done.
    assert (tmp_path / "out").stat().st_ino == written
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("call", ["replace", "write_text"])
def test_progress_that_cannot_be_written_ends_nothing_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(path: Path, *_: object) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, call, fail)
    ProgressFile(tmp_path).start("process 1 on here", "0123")
    assert list(tmp_path.iterdir()) == []


def write_half(path: Path, error: BaseException, read: Path) -> None:
    with atomic_path(path) as temporary, decompressed_file(read) as stream:
        temporary.write_text("half")
        stream.read(1)
        raise error


@READS_PROC
def test_a_block_that_fails_changes_nothing_and_a_disk_is_named(tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.touch()
    output = tmp_path / "out"
    output.write_text("before")
    with pytest.raises(KeyboardInterrupt):
        write_half(output, KeyboardInterrupt(), part)
    failing = OSError(errno.EIO, "Input/output error")  # of what is written meanwhile
    with pytest.raises(UserError, match=r"out: cannot be written: Input/output error"):
        write_half(output, failing, part)
    part.unlink()
    part.symlink_to("/proc/self/mem")  # can be opened; its first byte cannot be read
    with pytest.raises(UserError, match=r"part: cannot be read: Input/output error"):
        write_half(output, failing, part)
    assert output.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "part"}
