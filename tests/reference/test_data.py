"""The golden data are those that the original tools wrote, and no more than a clone can bear."""

from convs2s.files.checksums import sha256
from convs2s.files.text import read_lines
from tests.support.golden import DATA

SUMS = "SHA256SUMS"
MOST_BYTES = 12_000_000


def test_every_file_has_its_checksum_and_all_are_small() -> None:
    stated = {}
    for line in read_lines(DATA / SUMS):
        digest, _, name = line.partition("  ")
        stated[name] = digest
    files = [path for path in DATA.rglob("*") if path.is_file() and path.name != SUMS]
    assert {
        f"./{path.relative_to(DATA).as_posix()}": sha256(path) for path in files
    } == stated
    assert sum(path.stat().st_size for path in DATA.rglob("*")) < MOST_BYTES
