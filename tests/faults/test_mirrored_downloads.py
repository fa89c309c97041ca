"""Downloads from a mirror whose files are generated or cannot be read."""

import hashlib
from functools import partial
from pathlib import Path

import pytest

from convs2s.download.download import CHECKSUM_LIST, download_file
from convs2s.download.partial_file import Expected, PartialFile, SourceError
from convs2s.download.transfer import fetch
from tests.faults.systems import READS_PROC
from tests.support.refusals import refusal, says

BODY = b"small and generated"


def test_a_generated_file_is_held_to_the_mirrors_own_checksum(tmp_path: Path) -> None:
    """Not to upstream's."""
    mirror = tmp_path / "mirror"
    file = mirror / "host/a.gz"
    file.parent.mkdir(parents=True)
    sums = f"{hashlib.sha256(BODY).hexdigest()}  host/a.gz\n"
    (mirror / CHECKSUM_LIST).write_text(sums)
    output = tmp_path / "a.gz"
    download = partial(
        download_file,
        "http://host/a.gz",
        output,
        generated_mirror=str(mirror),
        sha256="0" * 64,
        size=7,
        waits=(),
    )
    file.write_bytes(BODY.upper())
    says(refusal(download), "expected ", f"delete {mirror} to renew it")
    assert not output.exists()
    file.write_bytes(BODY)
    download()
    assert output.read_bytes() == BODY


@READS_PROC
def test_a_mirror_that_cannot_be_read_does_not_give_the_file(tmp_path: Path) -> None:
    mirrored = tmp_path / "a.tgz"
    # Can be opened; its first byte cannot be read.
    mirrored.symlink_to("/proc/self/mem")
    with pytest.raises(SourceError, match=r"^Input/output error$"):
        fetch(str(mirrored), PartialFile(tmp_path / "b.tgz", Expected()), waits=())
