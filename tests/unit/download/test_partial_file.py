"""A download whose folder or whose mirror's disk fails ends in one line."""

import errno
from pathlib import Path

import pytest

from convs2s.download.partial_file import Expected, Origin, PartialFile, SourceError
from convs2s.download.transfer import fetch
from convs2s.errors import UserError
from convs2s.files.atomic import writing
from tests.support.systems import READS_PROC


def test_a_place_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    output = tmp_path / "file/a.tgz"
    said = f"^{output}: cannot be written: (Not a directory|File exists); make room or name another"
    with pytest.raises(UserError, match=said):
        PartialFile(output, Expected()).begin(Origin("http://host/a.tgz"))
    with pytest.raises(UserError, match=said):
        PartialFile(output, Expected()).append(lambda: b"", None)


def test_a_folder_above_that_cannot_be_made_is_of_the_output(tmp_path: Path) -> None:
    output = tmp_path / "downloads/host/a.tgz"
    read_only = OSError(
        errno.EROFS, "Read-only file system", str(tmp_path / "downloads")
    )
    with (
        pytest.raises(UserError, match=f"^{output}: cannot be written: Read"),
        writing(output),
    ):
        raise read_only


@READS_PROC
def test_a_mirror_that_cannot_be_read_does_not_give_the_file(tmp_path: Path) -> None:
    mirrored = tmp_path / "a.tgz"
    # Can be opened; its first byte cannot be read.
    mirrored.symlink_to("/proc/self/mem")
    with pytest.raises(SourceError, match=r"^Input/output error$"):
        fetch(str(mirrored), PartialFile(tmp_path / "b.tgz", Expected()), waits=())
