"""Archives that are damaged, or hold what no corpus has: refused, and nothing is written."""

import gzip
import stat
import tarfile
from pathlib import Path
from tarfile import TarInfo
from zipfile import ZipInfo

import pytest

from convs2s.download.archives import is_archive, open_member
from convs2s.files import compressed
from tests.faults.systems import READS_PROC
from tests.support.archives import COMPRESS, TEXT, flipped, make_archive, noise, read
from tests.support.refusals import refusal, refuses, rows, says

PAGE = b"<html>not found</html>"
LONG = b"x" * 100_000
MEMBERS = {"a/one.en": noise(9000), "two": noise(9001), "long": LONG}
FILES = [f"one.en{suffix}" for suffix in COMPRESS]
ARCHIVES = ["a.tar", "a.tgz", "a.tar.bz2", "a.tar.xz", "a.tar.zst", "a.zip"]
SECOND = 512 + 9216
"""Where the second member of a tar archive begins."""


@pytest.mark.parametrize("name", [*FILES, *ARCHIVES])
def test_damage(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if is_archive(path):
        member = "a/one.en"
        whole = make_archive(path, MEMBERS).read_bytes()
        damaged = [(whole + PAGE, "refused: ")]
    else:
        member = None
        whole = COMPRESS[path.suffix](noise(20_000))
        other_stream = flipped(whole, 4 * len(whole))
        damaged = [(whole + PAGE, "garbage after"), (whole + other_stream, "or not a")]
    damaged += [(b"", "truncated"), (whole[: len(whole) // 2], "truncated")]
    damaged.append((PAGE, "damaged"))
    if name == "a.tar":
        odd = whole[:SECOND] + noise(512) + whole[SECOND + 512 :]
        damaged += [(odd, "a damaged header"), (whole[:SECOND], "end mark is missing")]
    else:
        damaged.append((whole[:-20], "truncated"))
    if name in ("a.tgz", "a.zip"):
        damaged.append((flipped(whole, 8 * 60 + 2), "damaged"))
    if name == "a.zip":
        damaged.append((whole + whole, "something before or after"))
    for content, words in damaged:
        path.write_bytes(content)
        says(refusal(read, path, member), str(path), words)


def test_a_zip_archive_that_lies_about_a_size(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.zip", MEMBERS)
    size, lie = (number.to_bytes(4, "little") for number in (len(LONG), 99))
    path.write_bytes(path.read_bytes().replace(size, lie))
    refuses("damaged", read, path, "long")


ABSENT = """
a.tgz => a/one.fr => no member 'a/one.fr' ... of its 3 are: a/one.en
a.zip => a/one.fr => no member 'a/one.fr' ... of its 3 are: a/one.en
a.tar => => name the member to read
a.en => a => not an archive
absent.gz => => no such file
folder => => Is a directory
"""


def test_members_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, member, words in rows(ABSENT):
        if name.startswith("a."):
            make_archive(tmp_path / name, MEMBERS)
        refuses(words, read, tmp_path / name, member or None)


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_names_that_lead_out(tmp_path: Path, name: str) -> None:
    for member in ("../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:\\evil"):
        path = make_archive(tmp_path / name, {member: b"evil\n", "good.en": TEXT})
        for asked in (member, "good.en"):
            refuses("leads out of the archive", read, path, asked)


# An archive => the type of a member as tarfile or stat names it => its name => what it links to =>
# the message => whether other members can be read: not where nobody made the archive for a corpus.
ODD = """
a.tgz => SYMTYPE => odd => a/one.en => is a link or a folder => yes
a.tgz => LNKTYPE => odd => a/one.en => is a link or a folder => yes
a.tgz => DIRTYPE => odd => => is a link or a folder => yes
a.tgz => GNUTYPE_SPARSE => odd => => is a device or a sparse file => no
a.tgz => SYMTYPE => odd => ../secret => leads out of the archive => no
a.tgz => LNKTYPE => odd => ../secret => leads out of the archive => no
a.tgz => CHRTYPE => odd => => is a device => no
a.tgz => FIFOTYPE => odd => => is a device => no
a.tgz => REGTYPE => a/one.en => => more than once => no
a.zip => S_IFLNK => odd => => is a link or a device => no
a.zip => S_IFIFO => odd => => is a link or a device => no
a.zip => S_IFREG => a/one.en => => more than once => no
"""


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_odd_members(tmp_path: Path) -> None:
    odd: ZipInfo | TarInfo
    for archive, kind, name, target, words, others in rows(ODD):
        if archive == "a.zip":
            odd = ZipInfo(name)
            odd.external_attr = (getattr(stat, kind) | 0o777) << 16
        else:
            odd = TarInfo(name)
            odd.type = getattr(tarfile, kind)
            odd.linkname = target
        path = make_archive(tmp_path / archive, MEMBERS, odd)
        says(refusal(read, path, name), str(path), repr(name), words)
        if others == "yes":
            assert read(path, "a/one.en") == MEMBERS["a/one.en"]
        else:
            refuses(words, read, path, "a/one.en")


@pytest.mark.parametrize("suffix", COMPRESS)
def test_bombs(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, a member of an archive, and a compressed member that grow too much."""
    monkeypatch.setattr(compressed, "UNJUDGED_BYTES", 1 << 20)
    bomb = bytes(3 << 20)
    path = tmp_path / f"one.en{suffix}"
    path.write_bytes(COMPRESS[suffix](bomb))
    refuses("a decompression bomb", read, path)
    members = {"one": bomb, "one.gz": gzip.compress(bomb)}
    for name in (f"a.tar{suffix}", "a.zip"):
        path = make_archive(tmp_path / name, members)
        for member in members:
            refuses("a decompression bomb", read, path, member)


@READS_PROC
@pytest.mark.parametrize("name", ["a.en", "a.tar", "a.tgz"])
def test_a_disk_that_fails_is_not_taken_for_damage(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.symlink_to("/proc/self/mem")  # can be opened; its first byte cannot be read
    member = "one.en" if is_archive(path) else None

    def reads(size: int) -> None:
        with open_member(path, member) as stream:
            stream.read(size)

    for size in (1, -1):
        said = refusal(reads, size)
        assert said.startswith(f"{path}: cannot be read: Input/output error; the disk ")
