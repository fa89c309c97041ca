import bz2
import gzip
import io
import lzma
import random
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from convs2s.download.archives import is_archive, open_member
from convs2s.errors import UserError
from convs2s.files import compressed
from tests.support.damage import flipped
from tests.support.systems import READS_PROC

TEXT = "Ein Mann\u2028schläft .\nZwei Frauen lesen .\n".encode() * 50
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
MEMBERS = {"a/one.en": TEXT, "a/two.en": TEXT[::-1]}
ARCHIVES = ["a.tar", "a.tgz", "a.tar.bz2", "a.tar.xz", "a.tar.zst", "a.zip"]


def noise(size: int) -> bytes:
    return random.Random(1).randbytes(size)


def entry(name: str, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def make_tar(
    path: Path,
    members: dict[str, bytes] = MEMBERS,
    extra: tarfile.TarInfo | None = None,
) -> Path:
    """Write a tar archive of the members, with an odd one first."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        if extra is not None:
            archive.addfile(extra)
        for name, data in members.items():
            archive.addfile(entry(name, size=len(data)), io.BytesIO(data))
    suffix = (
        path.suffix.replace(".tgz", ".gz")
        .replace(".tbz2", ".bz2")
        .replace(".txz", ".xz")
    )
    path.write_bytes(COMPRESS.get(suffix, bytes)(plain.getvalue()))
    return path


def make_zip(path: Path, members: dict[str, bytes] = MEMBERS) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def make_archive(path: Path, members: dict[str, bytes] = MEMBERS) -> Path:
    """Write a zip or tar archive, as the suffix says."""
    return (make_zip if path.suffix == ".zip" else make_tar)(path, members)


def around(path: Path) -> list[Path]:
    """Everything in the archive's folder and beside that."""
    return sorted([*path.parent.rglob("*"), *path.parents[1].iterdir()])


def read(path: Path, member: str | None = None) -> bytes:
    before = around(path)
    try:
        with open_member(path, member) as stream:
            return stream.read()
    finally:
        assert around(path) == before  # whatever an archive says, nothing is written


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_single_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"one.en{suffix}"
    path.write_bytes(COMPRESS.get(suffix, bytes)(TEXT))
    assert read(path) == TEXT


@pytest.mark.parametrize("suffix", COMPRESS)
def test_several_streams_end_to_end_are_one_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"one.en{suffix}"
    path.write_bytes(COMPRESS[suffix](TEXT) + COMPRESS[suffix](b"more\n"))
    assert read(path) == TEXT + b"more\n"


def test_zero_padding_after_gzip_data_is_no_garbage(tmp_path: Path) -> None:
    path = tmp_path / "one.en.gz"
    path.write_bytes(gzip.compress(TEXT) + bytes(2048))
    assert read(path) == TEXT


@pytest.mark.parametrize(
    "name",
    [
        "a.tar",
        "a.tgz",
        "a.tar.gz",
        "a.tar.bz2",
        "a.tbz2",
        "a.tar.xz",
        "a.txz",
        "a.tar.zst",
    ],
)
def test_tar_members(tmp_path: Path, name: str) -> None:
    path = make_tar(tmp_path / name)
    assert is_archive(path)
    assert read(path, "a/one.en") == TEXT
    assert read(path, "./a/two.en") == TEXT[::-1]


def test_zip_members(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "en-ro.txt.zip")
    assert is_archive(path)
    assert read(path, "a/two.en") == TEXT[::-1]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("name", ["giga.tar", "giga.zip"])
def test_compressed_members_are_decompressed(
    tmp_path: Path, name: str, suffix: str
) -> None:
    members = {f"fixed.en{suffix}": COMPRESS[suffix](TEXT)}
    path = make_archive(tmp_path / name, members)
    assert read(path, f"fixed.en{suffix}") == TEXT


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_an_absent_member_names_the_nearest(tmp_path: Path, name: str) -> None:
    path = make_archive(tmp_path / name)
    with pytest.raises(
        UserError, match=r"no member 'a/one\.fr'; the nearest of its 2 are: a/one"
    ):
        read(path, "a/one.fr")


def test_an_archive_needs_a_member_and_a_file_has_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="name the member to read"):
        read(make_tar(tmp_path / "a.tar"))
    plain = tmp_path / "one.en"
    plain.write_bytes(TEXT)
    with pytest.raises(UserError, match="not an archive"):
        read(plain, "a")
    with pytest.raises(UserError, match=r"absent\.gz: no such file"):
        read(tmp_path / "absent.gz")
    with pytest.raises(UserError, match="Is a directory"):
        read(tmp_path)


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:\\evil"]
)
@pytest.mark.parametrize("kind", ["a.tgz", "a.zip"])
def test_climbing_and_absolute_names_are_refused(
    tmp_path: Path, kind: str, name: str
) -> None:
    members = {name: b"evil\n", "good.en": TEXT}
    path = make_archive(tmp_path / kind, members)
    for member in (name, "good.en"):
        with pytest.raises(UserError, match="leads out of the archive"):
            read(path, member)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_tar_links_are_refused(tmp_path: Path, kind: bytes) -> None:
    inside = make_tar(
        tmp_path / "a.tgz", extra=entry("link", type=kind, linkname="a/one.en")
    )
    with pytest.raises(UserError, match="'link' is a link or a folder"):
        read(inside, "link")
    assert read(inside, "a/one.en") == TEXT
    for target in ("/etc/passwd", "../secret"):
        outside = make_tar(
            tmp_path / "b.tgz", extra=entry("link", type=kind, linkname=target)
        )
        with pytest.raises(UserError, match="link 'link' leads out of the archive"):
            read(outside, "a/one.en")


@pytest.mark.parametrize(
    "mode", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO]
)
def test_zip_links_and_devices_are_refused(tmp_path: Path, mode: int) -> None:
    odd = zipfile.ZipInfo("odd")
    odd.external_attr = (mode | 0o777) << 16
    path = make_zip(tmp_path / "a.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(odd, b"/etc/passwd")
    for member in ("odd", "a/one.en"):
        with pytest.raises(UserError, match="'odd' is a link or a device"):
            read(path, member)


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    path = make_tar(tmp_path / "a.tgz", extra=entry("device", type=kind))
    for member in ("device", "a/one.en"):
        with pytest.raises(UserError, match="'device' is a device"):
            read(path, member)


def test_folders_are_refused(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "a.tar", extra=entry("folder", type=tarfile.DIRTYPE))
    with pytest.raises(UserError, match="a link or a folder"):
        read(path, "folder")


def test_a_member_held_twice_is_refused(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "a.tar", extra=entry("a/one.en", size=0))
    with pytest.raises(UserError, match=r"'a/one\.en' more than once"):
        read(path, "a/one.en")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_member_held_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("one", TEXT)
        archive.writestr("one", b"other\n")
    with pytest.raises(UserError, match="'one' more than once"):
        read(tmp_path / "a.zip", "one")


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.999])
def test_truncated_files_are_refused(tmp_path: Path, suffix: str, share: float) -> None:
    path = tmp_path / f"one.en{suffix}"
    whole = COMPRESS[suffix](noise(20000))
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match=f"{path.name}: truncated"):
        read(path)


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_suffix_may_stand_in_capitals(tmp_path: Path, name: str) -> None:
    path = make_archive(tmp_path / name).rename(tmp_path / name.upper())
    assert is_archive(path)
    assert read(path, "a/one.en") == TEXT
    plain = tmp_path / "ONE.EN.GZ"
    plain.write_bytes(gzip.compress(TEXT))
    assert read(plain) == TEXT


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("share", [0, 0.2, 0.5, 0.9])
def test_truncated_archives_are_refused(
    tmp_path: Path, name: str, share: float
) -> None:
    members = {"one": noise(9000), "two": noise(9001), "three": noise(1)}
    path = make_archive(tmp_path / name, members)
    whole = path.read_bytes()
    whole = whole[: len(whole.rstrip(b"\0"))]
    path.write_bytes(whole[: int(share * len(whole))])
    for member in members:
        with pytest.raises(UserError, match="truncated"):
            read(path, member)


def test_a_tar_cut_between_two_members_is_refused(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "a.tar", {"one": noise(512), "two": noise(512)})
    path.write_bytes(path.read_bytes()[:1024])
    with pytest.raises(UserError, match="end mark is missing"):
        read(path, "one")


@pytest.mark.parametrize("suffix", COMPRESS)
def test_trailing_garbage_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"one.en{suffix}"
    path.write_bytes(COMPRESS[suffix](TEXT) + b"<html>not found</html>")
    with pytest.raises(UserError, match="garbage after the end"):
        read(path)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_damage_in_a_second_stream_is_no_garbage(tmp_path: Path, suffix: str) -> None:
    path, second = tmp_path / f"one.en{suffix}", COMPRESS[suffix](noise(2000))
    path.write_bytes(COMPRESS[suffix](TEXT) + flipped(second, 8 * (len(second) // 2)))
    with pytest.raises(
        UserError, match=r"damaged, or not a .*; fetch or make it again"
    ):
        read(path)


@pytest.mark.parametrize("name", ARCHIVES)
def test_trailing_garbage_after_archives_is_refused(tmp_path: Path, name: str) -> None:
    path = make_archive(tmp_path / name)
    path.write_bytes(path.read_bytes() + b"<html>not found</html>")
    with pytest.raises(
        UserError, match=r"refused: .*(garbage|something before or after)"
    ):
        read(path, "a/one.en")


def test_two_zip_archives_end_to_end_are_refused(tmp_path: Path) -> None:
    first, second = (
        make_archive(tmp_path / name).read_bytes() for name in ("a.zip", "b.zip")
    )
    path = tmp_path / "both.zip"
    path.write_bytes(first + second)
    with pytest.raises(
        UserError, match="there is something before or after the zip archive"
    ):
        read(path, "a/one.en")


def test_garbage_between_tar_members_is_refused(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "a.tar", {"one": noise(512), "two": noise(512)})
    data = bytearray(path.read_bytes())
    data[1024:1536] = noise(512)
    path.write_bytes(data)
    for member in ("one", "two"):
        with pytest.raises(UserError, match="a damaged header"):
            read(path, member)


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    for path in (make_tar(tmp_path / "a.tgz"), make_zip(tmp_path / "a.zip")):
        path.write_bytes(flipped(path.read_bytes(), 8 * 60 + 2))
        with pytest.raises(UserError, match="damaged"):
            read(path, "a/one.en")


@pytest.mark.parametrize("name", ["a.en.gz", "a.tgz", "a.tar", "a.zip"])
def test_a_web_page_instead_of_the_file_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"<html><body>moved</body></html>")
    with pytest.raises(UserError, match="damaged"):
        read(path, "one" if is_archive(path) else None)


@pytest.fixture
def bomb(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Zeros, and a small bound in place of that up to which no ratio is asked."""
    monkeypatch.setattr(compressed, "UNJUDGED_BYTES", 1 << 20)
    return bytes(3 << 20)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_bombs_are_refused(tmp_path: Path, bomb: bytes, suffix: str) -> None:
    path = tmp_path / f"one.en{suffix}"
    path.write_bytes(COMPRESS[suffix](bomb))
    with pytest.raises(UserError, match="a decompression bomb"):
        read(path)


def test_70_mib_of_zeros_are_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "one.en.zst"
    path.write_bytes(COMPRESS[".zst"](bytes(70 << 20)))
    with pytest.raises(UserError, match="a decompression bomb"):
        read(path)


@pytest.mark.parametrize("name", ARCHIVES[1:])
def test_a_bomb_in_an_archive_is_refused(
    tmp_path: Path, bomb: bytes, name: str
) -> None:
    path = make_archive(tmp_path / name, {"one": bomb})
    with pytest.raises(UserError, match="a decompression bomb"):
        read(path, "one")


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_a_bomb_as_a_compressed_member_is_refused(
    tmp_path: Path, bomb: bytes, name: str
) -> None:
    path = make_archive(tmp_path / name, {"one.gz": gzip.compress(bomb)})
    with pytest.raises(UserError, match="a decompression bomb"):
        read(path, "one.gz")


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path: Path) -> None:
    size = 3_456_789
    path = make_zip(tmp_path / "a.zip", {"one": bytes(size)})
    lie = path.read_bytes().replace(
        size.to_bytes(4, "little"), (99).to_bytes(4, "little")
    )
    path.write_bytes(lie)
    with pytest.raises(UserError, match="damaged"):
        read(path, "one")


def test_sparse_members_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 20)
    made = subprocess.run(["tar", "-cSf", "a.tar", "holes"], cwd=tmp_path, check=False)
    if made.returncode:
        pytest.skip("no GNU tar here")
    with pytest.raises(UserError, match="sparse"):
        read(tmp_path / "a.tar", "holes")


def test_a_reader_of_the_first_lines_does_not_wait_for_the_rest(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "a.tar", {"one": TEXT, "two": noise(9000)})
    path.write_bytes(path.read_bytes()[:8000])
    with open_member(path, "one") as stream:
        assert stream.readline() == TEXT.splitlines(keepends=True)[0]


def test_the_readers_own_errors_pass_through(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "a.tgz")
    with pytest.raises(OSError, match="mine"), open_member(path, "a/one.en"):
        raise OSError("mine")


@READS_PROC
@pytest.mark.parametrize("size", [1, -1])
@pytest.mark.parametrize("name", ["a.en", "a.tar", "a.tgz"])
def test_a_disk_that_fails_is_not_taken_for_damage(
    tmp_path: Path, name: str, size: int
) -> None:
    path = tmp_path / name
    path.symlink_to("/proc/self/mem")  # can be opened; its first byte cannot be read
    member = "one.en" if is_archive(path) else None
    with pytest.raises(UserError) as error, open_member(path, member) as stream:
        stream.read(size)
    assert str(error.value) == f"{path}: cannot be read: Input/output error"
