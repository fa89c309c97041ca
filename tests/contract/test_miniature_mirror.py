"""The miniature mirror: the same bytes each time, with every file and member.

What is planted in it is counted by workflow/test_mirror_corpus.py.
"""

import io
import lzma
import re
import tarfile
from pathlib import Path

from convs2s.config.file_reference import local_path, parse_file_reference
from convs2s.config.load import load
from convs2s.download.archives import open_member
from convs2s.files.checksums import sha256
from convs2s.mirror.write import CONTENTS, write_mirror
from mirror.__main__ import shipped_tar
from mirror.contents import contents

ELSEWHERE = re.compile(
    "(demo|titles):|data/(wmt14_en_fr/bitexts.tgz|mixed/)|"
    "https://raw.githubusercontent.com/(Sandeep-4469|Jun1770watanabe|nyu-mll)/"
)
"""What no stand-in is generated for: the corpora of this project, and a file that nobody serves."""


def places(mirror: Path) -> list[str]:
    """Return what lies in the mirror, without its own list."""
    files = (path for path in mirror.rglob("*") if path.is_file())
    return sorted({str(path.relative_to(mirror)) for path in files} - {"SHA256SUMS"})


def test_the_same_bytes_each_time(mirror: Path, tmp_path: Path) -> None:
    """They are small."""
    write_mirror(tmp_path)
    listed = (tmp_path / "SHA256SUMS").read_text()
    assert listed == (mirror / "SHA256SUMS").read_text()
    sums = [f"{sha256(tmp_path / place)}  {place}" for place in places(tmp_path)]
    assert sorted(listed.splitlines()) == sorted(sums)
    assert sum(path.stat().st_size for path in mirror.rglob("*")) < 5_000_000


def members(tar: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]


def test_what_is_shipped_is_what_the_tool_writes() -> None:
    """After a change of tools/mirror: PYTHONPATH=tools python -m mirror."""
    shipped = members(lzma.decompress(CONTENTS.read_bytes()))
    made = members(shipped_tar(contents()))
    assert list(made) == list(shipped)
    changed = {name for name, data in made.items() if data != shipped[name]}
    # How torch writes a checkpoint may change; tests/workflow/test_released.py imports them.
    assert {name for name in changed if "model.pt" not in name} == set()


def test_every_file_and_member_that_a_task_names_is_there(
    root: Path, mirror: Path
) -> None:
    named = set()
    for task in load(root, {}).tasks.values():
        for file in map(parse_file_reference, task.references()):
            if ELSEWHERE.match(file.location):
                continue
            named.add(str(file.path(Path())))
            path = mirror / file.location
            if file.is_url:
                path = local_path(file.location, mirror)
            with open_member(path, None if file.is_records else file.member):
                pass
    assert named == set(places(mirror))
