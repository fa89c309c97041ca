"""A file of a generated mirror is held to the mirror's own checksum, not to upstream's."""

import hashlib
from pathlib import Path

import pytest

from convs2s.download.download import CHECKSUM_LIST, download_file
from convs2s.errors import UserError

URL = "http://host/a.gz"
UPSTREAM = "0" * 64
BODY = b"small and generated"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    file = tmp_path / "mirror/host/a.gz"
    file.parent.mkdir(parents=True)
    file.write_bytes(BODY)
    sums = f"{hashlib.sha256(BODY).hexdigest()}  host/a.gz\n"
    (tmp_path / "mirror" / CHECKSUM_LIST).write_text(sums)
    return tmp_path / "mirror"


def test_its_own_checksum_counts(mirror: Path, tmp_path: Path) -> None:
    output = tmp_path / "a.gz"
    download_file(
        URL, output, generated_mirror=str(mirror), sha256=UPSTREAM, size=7, waits=()
    )
    assert output.read_bytes() == BODY


def test_a_tampered_file_is_refused(mirror: Path, tmp_path: Path) -> None:
    (mirror / "host/a.gz").write_bytes(BODY.upper())
    with pytest.raises(UserError, match=f"expected .*; delete {mirror} to renew it$"):
        download_file(URL, tmp_path / "a.gz", generated_mirror=str(mirror), waits=())
    assert not (tmp_path / "a.gz").exists()
