"""Downloads from servers that are slow, busy, cut off or wrong, from mirrors, by two at once."""

import base64
import copy
import gzip
import hashlib
import json
import runpy
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from convs2s.config.file_reference import local_path
from convs2s.config.options import Options
from convs2s.download import transfer
from convs2s.download.download import download_file
from convs2s.paper.ledger import published_file
from tests.faults.downloads import BODY, OTHER
from tests.faults.loopback import LoopbackServer, Served
from tests.support.archives import make_archive, noise
from tests.support.processes import wait_for
from tests.support.refusals import refusal, says

SHA256 = hashlib.sha256(BODY).hexdigest()
MD5 = hashlib.md5(BODY).hexdigest()
KNOWN: dict[str, Any] = {"sha256": SHA256, "md5": MD5, "size": len(BODY)}
WAITS = (0.0, 0.0, 0.0)
ELSEWHERE = "http://up.example/a.tgz"

REST = [(70_000, 206, 130_000)]
WHOLE = [(None, 200, 200_000)]
AGAIN = REST + WHOLE
WEAK = {"etag": 'W/"1"'}
TAG = {"etag": '"1"'}
TAGGED_OTHER = {"etag": '"2"', "body": OTHER}
DATE = {"last_modified": "Sun, 22 Nov 2026 06:00:00 GMT"}
CLOCK = DATE["last_modified"]
PAGE: dict[str, Any] = {"body": b"<html/>", "content_type": "text/html; charset=utf-8"}


@dataclass
class Download:
    """A file of a server's, and where it is downloaded to."""

    server: LoopbackServer
    folder: Path
    url: str = ""

    @property
    def output(self) -> Path:
        return self.folder / "downloads/a.tgz"

    def beside(self, suffix: str) -> Path:
        return self.output.with_name(f"a.tgz{suffix}")

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.output.parent.glob("*"))

    @property
    def sent(self) -> list[tuple[int | None, int, int]]:
        answers = self.server.answers
        return [(answer.start, answer.status, answer.sent) for answer in answers]

    def serve(self, path: str = "/a.tgz", **habits: Any) -> str:
        return self.server.serve(path, Served(**{"body": BODY} | habits))

    def mirror(self, **habits: Any) -> list[str]:
        """Serve a mirror's copy of the file; return the mirror's base URL."""
        path = f"/{self.server.host}/a.tgz"
        return [self.serve(f"/mirror{path}", **habits).removesuffix(path)]

    def folder_mirror(self, host: str, body: bytes = BODY) -> list[str]:
        file = self.folder / "mirror" / host / "a.tgz"
        file.parent.mkdir(parents=True)
        file.write_bytes(body)
        return [f"{self.folder}/mirror/"]

    def bring(self, url: str = "", body: bytes = BODY, **given: Any) -> None:
        """Download the file, and compare its bytes."""
        download_file(url or self.url, self.output, **{"waits": ()} | given)
        assert self.output.read_bytes() == body

    def refused(self, url: str = "", **given: Any) -> str:
        options = {"waits": ()} | given
        return refusal(download_file, url or self.url, self.output, **options)

    def interrupt(self, sha256: str | None = SHA256, **habits: Any) -> None:
        """Run a download that ends with the first 70,000 bytes in the part."""
        self.serve(cuts=[70_000], **habits)
        says(self.refused(sha256=sha256), "cut after 70000 of 200000 bytes")
        self.serve(**habits)
        self.server.answers.clear()


@pytest.fixture
def download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Download]:
    """A download, without any proxy, from a server that serves the file."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    server = LoopbackServer()
    one = Download(server, tmp_path)
    one.url = one.serve()
    yield one
    server.close()


@pytest.mark.parametrize(
    ("first", "then", "has_checksum", "answers"),
    [
        (None, {"has_length": False}, True, WHOLE),
        (None, {"pause": 0.05}, True, WHOLE),
        (
            None,
            {"cuts": [70_000], "is_silent": True},
            True,
            [(None, 200, 70_000), *REST],
        ),
        (
            None,
            {"cuts": [70_000, 50_000]},
            True,
            [(None, 200, 70_000), (70_000, 206, 50_000), (120_000, 206, 80_000)],
        ),
        (
            None,
            {"cuts": [70_000], "ranges": False},
            True,
            [(None, 200, 70_000), (70_000, 200, 200_000)],
        ),
        (None, {"statuses": [503]}, True, [(None, 503, 0), *WHOLE]),
        ({}, {}, True, REST),
        # A date vouches for nothing: times are kept by copies, and count seconds.
        (DATE, DATE | {"body": OTHER}, False, WHOLE),
        (TAG | DATE, TAG | DATE, False, REST),
        (TAG, DATE | {"body": OTHER}, False, AGAIN),
        (
            TAG,
            TAG | {"hides_size": True, "cuts": [50_000], "has_length": False},
            False,
            [(70_000, 206, 50_000), (120_000, 206, 80_000)],
        ),
        (TAG, TAGGED_OTHER, False, AGAIN),
        (
            TAG,
            TAG | {"body": OTHER + b"longer"},
            True,
            [(70_000, 206, 130_006), (None, 200, 200_006)],
        ),
        ({}, {"body": OTHER}, True, AGAIN),  # only the checksum tells
        ({}, {"body": OTHER, "wrong_range": True}, True, AGAIN),
        ({}, {}, False, WHOLE),  # nothing tells
        (WEAK, WEAK | {"body": OTHER}, False, WHOLE),
        # The server replaces the file, and keeps its tag: the archive's checksum tells.
        (TAG, TAG | {"body": OTHER}, False, AGAIN),
        (WEAK | DATE, WEAK | DATE | {"body": OTHER}, False, WHOLE),
        (TAG, WEAK | {"body": OTHER}, False, AGAIN),
        ({}, {"body": BODY[:100]}, True, [(70_000, 416, 0), (None, 200, 100)]),
    ],
)
def test_a_download_ends_with_the_file_that_the_server_has_now(
    download: Download,
    monkeypatch: pytest.MonkeyPatch,
    first: dict[str, Any] | None,
    then: dict[str, Any],
    has_checksum: bool,
    answers: list[tuple[int | None, int, int]],
) -> None:
    monkeypatch.setattr(transfer, "_SILENCE_SECONDS", 0.3)
    if first is not None:
        download.interrupt(SHA256 if has_checksum else None, **first)
    body = then.get("body", BODY)
    digest = hashlib.sha256(body).hexdigest().upper() if has_checksum else None
    download.serve(**copy.deepcopy(then))
    download.bring(body=body, sha256=digest, waits=(0.0,))
    assert download.sent == answers
    note = [] if has_checksum else ["a.tgz.sha256"]
    assert download.names == ["a.tgz", *note]


@pytest.mark.parametrize(
    ("served", "known", "words", "answers"),
    [
        ({"body": OTHER}, "sha256", [f"expected {SHA256}", "config/downloads.yaml"], 1),
        ({"body": OTHER}, "md5", ["has md5"], 1),
        ({"body": BODY + b"more"}, "size", ["has 200004 bytes, expected 200000"], 1),
        ({"body": BODY * 9, "has_length": False}, "size", ["more than", "200000"], 1),
        (
            {"ranges": False, "announced": 200_007},
            "",
            ["cut after 200000 of 200007"],
            4,
        ),
        ({"announced": 199_993}, "size", ["has 199993 bytes"], 1),
        ({"announced": 199_993}, "sha256", ["has sha256"], 1),
        (
            {"has_length": False, "cuts": [7] + [0] * 4},
            "size",
            ["cut after 0 of 200000"],
            4,
        ),
        ({"body": OTHER, "cuts": [100_000] * 20}, "sha256", ["has sha256"], 2),
        ({"statuses": [503] * 9}, "", ["HTTP status 503", "also when asked again"], 4),
        ({"statuses": [403]}, "", ["HTTP status 403"], 1),
        ({"statuses": [404]}, "", ["HTTP status 404", "connect", "mirrors:"], 1),
        (PAGE, "", ["answers with a web page"], 1),
        ({"body": b""}, "", ["is empty"], 1),
        ({"redirect": "file:///etc/passwd"}, "", ["no source gives this file"], 1),
        ({"redirect": "http://127.0.0.1:port/a"}, "", ["no source gives"], 4),
        ({"redirect": "/a.tgz"}, "", ["infinite loop"], 5),
    ],
)
def test_what_is_not_the_file_is_refused_and_leaves_none(
    download: Download,
    served: dict[str, Any],
    known: str,
    words: list[str],
    answers: int,
) -> None:
    download.serve(**copy.deepcopy(served))
    given = {known: KNOWN[known]} if known else {}
    message = download.refused(waits=WAITS, **given)
    says(message, download.url, *words)
    assert len(download.sent) == answers
    assert not download.output.exists()
    keeps_part = "cut after" in message
    assert bool(download.names) == keeps_part


XHTML = (
    b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- a -->\n<!DOCTYPE HTML PUBLIC "-//W3C">'
)
SCRIPT = b"\r\n<script>top.location.href='http://login.example'</script>"
TEXT = b"A man sees .\n" * 9000
GZIP = gzip.compress(TEXT, mtime=0)
ENCODED: dict[str, Any] = {"headers": {"Content-Encoding": "gzip"}}
TWICE: dict[str, Any] = {"body": gzip.compress(GZIP, mtime=0)}
ENDLESS: dict[str, Any] = {"has_length": False}


def packed(suffix: str) -> bytes:
    """Return an archive with a member of 200,000 bytes of noise."""
    with TemporaryDirectory() as folder:
        path = make_archive(Path(folder) / f"a{suffix}", {"a.en": noise(200_000)})
        return path.read_bytes()


def spoilt(suffix: str, place: int = 100_000) -> dict[str, Any]:
    """Serve an archive with a wrong byte in its middle, as of two versions."""
    body = bytearray(packed(suffix))
    body[place] ^= 0xFF
    return {"body": bytes(body)}


@pytest.mark.parametrize(
    ("name", "served", "words", "answers"),
    [
        ("a.en", ENCODED | {"body": GZIP}, "encoded by gzip, which was not asked", 1),
        ("a.tar", {"headers": {"Content-Encoding": "br"}}, "encoded by br", 1),
        ("a.en.gz", ENCODED | TWICE, "compressed by gzip twice", 1),
        ("a.en", {"body": XHTML}, "(is a web page); see what a browser", 1),
        ("a.en", {"body": SCRIPT, "content_type": "text/plain"}, "is a web page", 1),
        ("a.tgz", {"body": b"<HTML><body>" * 99}, "is a web page", 1),
        ("a.en", {"content_type": "application/xhtml+xml"}, "with a web page", 1),
        ("a.tgz", {"body": b'{"error": "quota"}'}, "not a gzip file", 1),
        ("a.en.xz", {"body": GZIP}, "not a xz file", 1),
        ("a.zip", {"body": GZIP}, "not a zip file", 1),
        ("a.tar", {"body": GZIP}, "a damaged header", 1),
        ("a.zip", spoilt(".zip"), "damaged", 1),
        ("a.tar.zst", spoilt(".tar.zst"), "damaged", 1),
        ("a.en", ENDLESS | {"body": TEXT, "cuts": [9] * 4}, "without a length", 1),
        ("a.en.gz", ENDLESS | {"body": GZIP, "cuts": [20] * 4}, "gzip data ends", 4),
        ("a.zip", ENDLESS | {"body": packed(".zip"), "cuts": [99_999] * 4}, "zip", 4),
        ("a.en", {"is_chunked": True, "body": TEXT, "cuts": [9] * 4}, "was cut", 4),
    ],
)
def test_without_a_checksum_the_content_has_to_vouch(
    download: Download, name: str, served: dict[str, Any], words: str, answers: int
) -> None:
    url = download.serve(f"/{name}", **copy.deepcopy(served))
    output = download.output.with_name(name)
    says(refusal(download_file, url, output, waits=WAITS), url, words)
    assert len(download.sent) == answers
    assert not output.exists()


@pytest.mark.parametrize(
    ("name", "served"),
    [
        ("a.en.gz", {"body": GZIP, "headers": {"Content-Encoding": "x-gzip"}}),
        ("a.en", {"body": TEXT, "headers": {"Content-Encoding": "identity"}}),
        ("a.html", {"body": XHTML, "content_type": "text/html"}),
        ("a.sgm", {"body": b'<?xml?>\n<!DOCTYPE mteval SYSTEM "a.dtd">\n<mteval>'}),
        ("a.xml", {"body": b"<header>\n<a/>\n</header>\n"}),
        ("a.en", {"is_chunked": True, "body": TEXT}),
        ("a.en.gz", ENDLESS | {"body": GZIP, "cuts": [20]}),
        ("a.tar.xz", ENDLESS | {"body": packed(".tar.xz"), "cuts": [99_999]}),
    ],
)
def test_without_a_checksum_what_is_whole_is_taken(
    download: Download, name: str, served: dict[str, Any]
) -> None:
    url = download.serve(f"/{name}", **copy.deepcopy(served))
    output = download.output.with_name(name)
    download_file(url, output, waits=WAITS)
    assert output.read_bytes() == served["body"]


def test_text_of_two_versions_is_not_pieced_together(download: Download) -> None:
    url = download.serve("/a.en", body=TEXT, cuts=[1000], **TAG)
    output = download.output.with_name("a.en")
    says(refusal(download_file, url, output, waits=()), "cut after 1000")
    other = TEXT.replace(b"man", b"dog")
    download.serve("/a.en", body=other, etag='"2"')
    download_file(url, output, waits=(0.0,))
    assert output.read_bytes() == other


@pytest.mark.parametrize(
    ("status", "after", "slept"),
    [
        (503, "7", [7]),
        (429, "7", [7]),
        (503, "0", [2]),  # the wait of the program is longer
        (503, "\u0667".encode().decode("latin-1"), [2]),
        (503, "Sun, 22 Nov 2026 06:00:20 GMT", [20]),
        (503, "Sun, 22 Nov 2026 05:00:00 GMT", [2]),
        (503, "Sun, 22 Nov 1926 06:00:20 GMT", [2]),
        (503, "Mon, 23 Nov 2126 06:00:00 GMT", None),
        (429, "301", None),
        (503, "9" * 400, None),
    ],
)
def test_a_server_is_asked_again_when_it_says(
    download: Download,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    after: str,
    slept: list[int] | None,
) -> None:
    found: list[float] = []
    monkeypatch.setattr(transfer, "time", SimpleNamespace(sleep=found.append))
    headers = {"Retry-After": after}
    download.serve(statuses=[status], headers=headers, date=CLOCK)
    if slept is None:
        says(download.refused(waits=(2.0,)), f"HTTP status {status}", "asks to wait")
        assert len(download.sent) == 1
    else:
        download.bring(waits=(2.0,))
    assert found == (slept or [])


@pytest.mark.parametrize(
    "record", ["", "{}", "[1]", "not json", '{"source": "elsewhere"}']
)
def test_a_part_of_unknown_origin_is_not_used(download: Download, record: str) -> None:
    download.interrupt(**TAG)
    origin = download.beside(".part.json")
    stated = {"source": download.url, "last_modified": None, "size": 200_000} | TAG
    assert json.loads(origin.read_text()) == stated
    origin.write_text(record)
    download.bring(sha256=SHA256)
    assert download.sent == WHOLE


def test_a_part_that_is_whole_is_asked_for_nothing(download: Download) -> None:
    download.interrupt()
    download.beside(".part").write_bytes(BODY)
    download.bring(sha256=SHA256)
    assert download.sent == []


def test_a_cut_after_a_redirection_is_resumed(download: Download) -> None:
    there = download.serve("/there/b.tgz", cuts=[70_000])
    download.serve(redirect=there)
    download.bring(sha256=SHA256, waits=WAITS)
    found = [(None, 302, 0), (None, 200, 70_000), (70_000, 302, 0), *REST]
    assert download.sent == found


@pytest.mark.parametrize("size", [None, 200_000])
def test_a_log_in_page_costs_nothing(download: Download, size: int | None) -> None:
    download.interrupt(None, **TAG)
    download.serve(ranges=False, **PAGE)
    says(download.refused(size=size), "has 7 bytes" if size else "with a web page")
    download.serve(**TAG)
    download.bring()
    assert download.sent[-1:] == REST


def test_a_stale_mirror_costs_nothing_of_what_upstream_gave(download: Download) -> None:
    download.interrupt()
    mirrors = download.mirror(body=OTHER[:60])
    mirrors += download.folder_mirror(download.server.host, OTHER)
    download.bring(mirrors=mirrors, sha256=SHA256)
    assert download.names == ["a.tgz"]
    assert download.sent[-1:] == REST


def test_parts_of_several_sources_are_kept_apart_and_go_at_the_end(
    download: Download,
) -> None:
    download.interrupt()
    mirrors = download.mirror(body=OTHER, cuts=[5000])
    download.serve(statuses=[404])
    message = download.refused(mirrors=mirrors, sha256=SHA256)
    says(message, "cut after 5000 of 200000 bytes")
    assert len(download.names) == 4
    download.bring(mirrors=download.folder_mirror(download.server.host), sha256=SHA256)
    assert download.names == ["a.tgz"]


def test_parts_of_a_file_that_is_there_go(download: Download) -> None:
    """Who is killed after the file has its name leaves them."""
    download.bring(sha256=SHA256)
    for kind in (".part", ".part.json", ".part-mirror", ".part-mirror.json"):
        download.beside(kind).write_text("{}")
    download.bring(sha256=SHA256)
    assert download.names == ["a.tgz"]
    assert len(download.sent) == 1


def test_the_first_download_is_recorded_and_enforced(download: Download) -> None:
    download.bring()
    record = download.beside(".sha256")
    assert record.read_text() == f"{SHA256}  a.tgz\n"
    download.output.unlink()
    download.serve(body=OTHER)
    says(download.refused(), f"expected {SHA256}", f"delete {record}")
    assert download.names == ["a.tgz.sha256"]
    record.write_text("?\n")
    says(download.refused(), f"{record}:1: expected a SHA-256")
    download.bring(body=OTHER, md5=hashlib.md5(OTHER).hexdigest())


# Mirrors


def test_mirrors_come_first_in_their_order(
    download: Download, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"{download.server.host}/a.tgz"
    stale = download.folder_mirror(download.server.host, OTHER)
    mirrors = [f"{download.folder}/none", *stale, *download.mirror()]
    download.bring(mirrors=mirrors, sha256=SHA256)
    said = capsys.readouterr()
    says(said.err, f"none/{place}: No such file", f"{stale[0]}{place}: has sha256")
    says(said.err, "a.tgz: 100%")
    assert said.out == ""
    assert [answer.path for answer in download.server.answers] == [f"/mirror/{place}"]
    download.server.close()
    says(download.refused(mirrors=stale, md5="0"), "no connection: Connection refused")


class Params(dict[str, Any]):
    """The params of a job as its script sees them: by their names and as items."""

    __getattr__ = dict.__getitem__


def test_the_workflow_finds_a_mirror_in_the_home_folder(
    root: Path, download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(download.folder))
    download.folder_mirror("up.example")
    rule = SimpleNamespace(
        input=[],
        output=[str(download.output)],
        log=[str(download.folder / "a.log")],
        config={"mirrors": ["~/mirror"]},
        params=Params(source={"url": ELSEWHERE, "sha256": SHA256}),
    )
    runpy.run_path(str(root / "workflow/scripts/download_file.py"), {"snakemake": rule})
    assert download.output.read_bytes() == BODY


@pytest.mark.parametrize(
    ("base", "path", "secrets", "authorization"),
    [
        (
            "http://me:p%40ss@{}/m",
            "/m/up.example/a.tgz",
            ["me:", "p%40", "p@ss"],
            f"Basic {base64.b64encode(b'me:p@ss').decode()}",
        ),
        (
            "http://{}/m?token=secret&path=",
            "/m?token=secret&path=/up.example/a.tgz",
            ["secret"],
            None,
        ),
    ],
)
def test_a_mirrors_secret_is_sent_to_the_mirror_and_shown_to_nobody(
    download: Download,
    capfd: pytest.CaptureFixture[str],
    base: str,
    path: str,
    secrets: list[str],
    authorization: str | None,
) -> None:
    download.serve(
        path, statuses=[500], cuts=[5000], authorization=authorization, **TAG
    )
    mirrors = [base.format(download.server.host)]
    said = download.refused(ELSEWHERE, mirrors=mirrors)
    said += download.refused(ELSEWHERE, mirrors=mirrors)
    said += "".join(capfd.readouterr())
    said += download.beside(".part-mirror.json").read_text()
    says(said, f"{download.server.host}/m")
    assert not [secret for secret in secrets if secret in said]
    download.bring(ELSEWHERE, mirrors=mirrors)
    assert [status for _, status, _ in download.sent] == [500, 200, 206]


def test_a_redirection_does_not_take_a_password_along(download: Download) -> None:
    download.serve("/m/up.example/a.tgz", redirect=download.url)
    download.bring(ELSEWHERE, mirrors=[f"http://me:secret@{download.server.host}/m"])
    headers = download.server.authorizations
    assert [bool(header) for header in headers] == [True, False]


@pytest.mark.parametrize(
    ("base", "word"),
    [
        ("http://me:se/secret@h/m", "%2F"),
        ("http://me:se secret@h", "%20"),
        ("http://me:secret?@h", "%3F"),
        ("s3://bucket", "s3://bucket: expected a folder or an http"),
    ],
)
def test_a_mirror_that_is_no_address_is_refused_unseen(
    download: Download, base: str, word: str
) -> None:
    message = download.refused(ELSEWHERE, mirrors=[base])
    says(message, "mirrors:", word)
    assert "secret" not in message


# Disk and places


def test_free_space_is_checked_first(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = shutil.disk_usage("/")._replace(free=199_999)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room)
    says(download.refused(sha256=SHA256), "200000 more bytes", "only 199999 are free")
    room = room._replace(free=200_000)
    download.bring(sha256=SHA256)


@pytest.mark.parametrize(
    "url",
    [
        "http://../a",
        "http://h/./a",
        "http://h//etc/passwd",
        "http://h/a/",
        "http://h/",
        "http:///a",
        "http://h/a?b=1",
        "http://h/a#b",
        "http://name:secret@h/a",
        "http://[h/a",
        "http://h/a b",
        "http://h/a\n",
        "http://h/\\a",
        "http://h/é",
        "ftp://h/a",
        "demo://../a",
        "/etc/passwd",
        "",
    ],
)
def test_no_address_leads_out_of_the_downloads(url: str, tmp_path: Path) -> None:
    refusal(local_path, url, tmp_path)
    refusal(download_file, url, tmp_path / "downloads/a.tgz")
    assert list(tmp_path.iterdir()) == []


# Two at once


def at_once(*functions: Callable[[], object]) -> None:
    """Call functions in a thread each; locks of the kernel's are those of open files."""
    with ThreadPoolExecutor(len(functions)) as pool:
        for call in [pool.submit(function) for function in functions]:
            call.result(60)


@pytest.mark.parametrize("known", [SHA256, None])
def test_of_several_processes_one_brings_the_file(
    download: Download, known: str | None
) -> None:
    download.serve(pause=0.03)
    mirrors = download.mirror(pause=0.03)
    at_once(
        lambda: download.bring(sha256=known),
        lambda: download.bring(sha256=known, mirrors=mirrors),
    )
    assert len(download.sent) == 1


def test_who_waited_brings_what_the_other_could_not(download: Download) -> None:
    download.serve(cuts=[70_000], pause=0.03)

    def go_on() -> None:
        wait_for(download.beside(".part").exists)
        download.bring(sha256=SHA256)

    at_once(download.refused, go_on)
    assert download.sent[1:] == REST


def test_more_than_the_server_said_is_fetched_again(download: Download) -> None:
    """Without locks another process may write to the same part."""
    download.serve(pause=0.03)

    def intrude() -> None:
        wait_for(download.beside(".part").exists)
        with download.beside(".part").open("ab") as part:
            part.write(b"of another process")

    at_once(lambda: download.bring(waits=(0.0,)), intrude)


def test_a_published_ledger_is_fetched_once_and_again_where_it_is_damaged(
    download: Download, tmp_path: Path
) -> None:
    options = Options(published=download.serve(pause=0.03))
    at_once(*[lambda: published_file(options, tmp_path)] * 2)
    place = local_path(download.url, tmp_path)
    assert place.read_bytes() == BODY
    assert len(download.sent) == 1
    place.write_bytes(BODY + BODY)
    assert published_file(options, tmp_path) == place
    assert place.read_bytes() == BODY
    place.with_name("a.tgz.sha256").unlink()  # somebody else has laid it there
    place.write_bytes(OTHER)
    published_file(options, tmp_path)
    assert place.read_bytes() == OTHER
