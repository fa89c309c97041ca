"""A file to download, and what a test looks at afterwards."""

import hashlib
import random
from pathlib import Path

import pytest

from convs2s.download.download import download_file
from convs2s.errors import UserError
from tests.support.loopback import LoopbackServer, Served

BODY = random.Random(1).randbytes(200_000)
OTHER = random.Random(2).randbytes(200_000)
SHA256 = hashlib.sha256(BODY).hexdigest()
MD5 = hashlib.md5(BODY).hexdigest()
WAITS = (0.0, 0.0, 0.0)


def names(output: Path) -> list[str]:
    """Return what lies in the output's folder."""
    return sorted(path.name for path in output.parent.glob("*"))


def sent(server: LoopbackServer) -> list[tuple[int | None, int, int]]:
    """Return the start, status and bytes of each answer."""
    return [(answer.start, answer.status, answer.sent) for answer in server.answers]


def mirror(server: LoopbackServer, served: Served, place: str = "a.tgz") -> str:
    """Serve a mirror's copy of ``http://HOST/PLACE``; return the mirror's base URL."""
    path = f"/{server.host}/{place}"
    return server.serve(f"/mirror{path}", served).removesuffix(path)


def interrupt(
    server: LoopbackServer, url: str, output: Path, sha256: str | None = SHA256
) -> None:
    """Run a download that ends with the first 70,000 bytes in the part."""
    path = "/" + url.split("/", 3)[3]
    server.files[path].cuts = [70_000]
    with pytest.raises(UserError, match="cut after 70000 of 200000 bytes"):
        download_file(url, output, sha256=sha256, waits=())
    assert names(output) == ["a.tgz.part", "a.tgz.part.json"]
    server.answers.clear()
