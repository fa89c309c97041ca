"""Downloads from servers that are slow, busy, cut off or wrong, from mirrors, by two at once."""

import gzip
import hashlib
import io
import runpy
import shutil
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from convs2s.config.file_reference import local_path
from convs2s.config.options import Options
from convs2s.download import transfer
from convs2s.download.download import CHECKSUM_LIST, download_file
from convs2s.paper.ledger import published_file
from tests.faults.downloads import BODY, OTHER
from tests.faults.loopback import LoopbackServer, Served
from tests.faults.systems import READS_PROC
from tests.support.archives import COMPRESS, flipped, noise
from tests.support.processes import wait_for
from tests.support.refusals import refusal, rows, says

SHA256 = hashlib.sha256(BODY).hexdigest()
MD5 = hashlib.md5(BODY).hexdigest()
KNOWN: dict[str, Any] = {"sha256": SHA256, "md5": MD5, "size": len(BODY)}
WAITS = (0.0, 0.0, 0.0)
ELSEWHERE = "http://up.example/a.en"
TAG = "headers: {ETag: a}"
WHOLE = "0:200:200000"
REST = "70000:206:130000"

GZIP = gzip.compress(BODY, mtime=0)
XHTML = (
    b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- a -->\n<!DOCTYPE HTML PUBLIC "-//W3C">'
)
ZIP = io.BytesIO()
with zipfile.ZipFile(ZIP, "w") as archive:
    archive.writestr("a.en", noise(200_000))
ZST = COMPRESS[".zst"](noise(200_000))
BODIES = {
    "whole": BODY,
    "other": OTHER,
    "longer": OTHER + b"longer",
    "nine": BODY * 9,
    "start": BODY[:100],
    "empty": b"",
    "page": b"<html/>",
    "xhtml": XHTML,
    "script": b"\r\n<script>top.location.href='http://login.example'</script>",
    "html": b"<HTML><body>" * 99,
    "sgml": b'<?xml?>\n<!DOCTYPE mteval SYSTEM "a.dtd">\n<mteval>',
    "xml": b"<header>\n<a/>\n</header>\n",
    "json": b'{"error": "quota"}',
    "gzip": GZIP,
    "twice": gzip.compress(GZIP, mtime=0),
    "xz": COMPRESS[".xz"](noise(200_000)),
    "zip": ZIP.getvalue(),
    # A wrong byte in the middle, as of two versions.
    "spoilt zip": flipped(ZIP.getvalue(), 800_000),
    "spoilt zst": flipped(ZST, 800_000),
}


@dataclass
class Download:
    """A file of a server's, and where it is downloaded to.

    The server's habits are the fields of `Served` in YAML, a body by its name in ``BODIES``.
    """

    server: LoopbackServer
    folder: Path
    name: str = "a.en"

    @property
    def url(self) -> str:
        return f"http://{self.server.host}/{self.name}"

    @property
    def output(self) -> Path:
        return self.folder / "downloads" / self.name

    def beside(self, suffix: str) -> Path:
        return self.output.with_name(f"{self.name}{suffix}")

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.output.parent.glob("*"))

    @property
    def sent(self) -> str:
        return " ".join(self.server.answers)

    def serve(self, habits: str = "", path: str = "") -> str:
        stated = yaml.safe_load(f"{{{habits}}}")
        stated["body"] = BODIES[stated.get("body", "whole")]
        return self.server.serve(path or f"/{self.name}", Served(**stated))

    def mirror(self, habits: str) -> list[str]:
        """Serve a mirror's copy of the file; return the mirror's base URL."""
        path = f"/{self.server.host}/a.en"
        return [self.serve(habits, f"/mirror{path}").removesuffix(path)]

    def folder_mirror(self, host: str, body: bytes = BODY) -> list[str]:
        file = self.folder / "mirror" / host / "a.en"
        file.parent.mkdir(parents=True)
        file.write_bytes(body)
        return [f"{self.folder}/mirror/"]

    def bring(self, url: str = "", body: bytes = BODY, **given: Any) -> None:
        """Download the file, and compare its bytes."""
        download_file(url or self.url, self.output, **{"waits": ()} | given)
        assert self.output.read_bytes() == body

    def refused(self, url: str = "", **given: Any) -> str:
        return refusal(self.bring, url, **given)

    def interrupt(self, habits: str = "", sha256: str | None = SHA256) -> None:
        """Run a download that ends with the first 70,000 bytes in the part."""
        self.serve(f"cuts: [70000], {habits}")
        says(self.refused(sha256=sha256), "cut after 70000 of 200000 bytes")
        self.serve(habits)
        self.server.answers.clear()


@pytest.fixture
def download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Download]:
    """A download, without any proxy, from a server that serves the file."""
    monkeypatch.setenv("no_proxy", "*")
    server = LoopbackServer()
    one = Download(server, tmp_path)
    one.serve()
    yield one
    server.close()


# An interrupted download from a server with these habits (none: there was none); the server's
# habits then; whether a checksum is known; the answers. A date vouches for nothing: times are kept
# by copies, and count seconds.
ENDINGS = """
none => has_length: false => sha256 => 0:200:200000
none => pause: 0.05 => sha256 => 0:200:200000
none => cuts: [70000], is_silent: true => sha256 => 0:200:70000 70000:206:130000
none => cuts: [70000, 50000] => sha256 => 0:200:70000 70000:206:50000 120000:206:80000
none => cuts: [70000], ranges: false => sha256 => 0:200:70000 70000:200:200000
=> => sha256 => 70000:206:130000
=> => => 0:200:200000
=> body: other => sha256 => 70000:206:130000 0:200:200000
=> body: other, wrong_range: true => sha256 => 70000:206:130000 0:200:200000
=> body: start => sha256 => 70000:416:0 0:200:100
headers: {Last-Modified: a} => body: other, headers: {Last-Modified: a} => => 0:200:200000
headers: {ETag: W/a} => body: other, headers: {ETag: W/a} => => 0:200:200000
headers: {ETag: a} => headers: {ETag: a} => => 70000:206:130000
headers: {ETag: a} => body: other, headers: {ETag: b} => => 70000:206:130000 0:200:200000
headers: {ETag: a} => body: other => => 70000:206:130000 0:200:200000
headers: {ETag: a} => body: longer, headers: {ETag: a} => sha256 => 70000:206:130006 0:200:200006
headers: {ETag: a} => hides_size: true, has_length: false, cuts: [50000], headers: {ETag: a} => => \
70000:206:50000 120000:206:80000
"""


@pytest.mark.parametrize(("first", "then", "known", "answers"), rows(ENDINGS))
def test_a_download_ends_with_the_file_that_the_server_has_now(
    download: Download,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    then: str,
    known: str,
    answers: str,
) -> None:
    monkeypatch.setattr(transfer, "_SILENCE_SECONDS", 0.3)
    if first != "none":
        download.interrupt(first, SHA256 if known else None)
    download.serve(then)
    body = download.server.files["/a.en"].body
    digest = hashlib.sha256(body).hexdigest().upper() if known else None
    download.bring(body=body, sha256=digest, waits=(0.0,))
    assert download.sent == answers
    assert download.names == (["a.en"] if known else ["a.en", "a.en.sha256"])


WRONG_FILES = """
body: other => sha256 => expected ... config/downloads.yaml => 1
body: other => md5 => has md5 => 1
body: longer => size => has 200006 bytes, expected 200000 => 1
body: nine, has_length: false => size => more than ... 200000 => 1
announced: 200007, ranges: false => => cut after 200000 of 200007 => 4
announced: 199993 => size => has 199993 bytes => 1
announced: 199993 => sha256 => has sha256 => 1
has_length: false, cuts: [7, 0, 0, 0, 0] => size => cut after 0 of 200000 => 4
body: other, cuts: [100000] => sha256 => has sha256 => 2
statuses: [503, 503, 503, 503] => => HTTP status 503 ... also when asked again => 4
statuses: [403] => => HTTP status 403 => 1
statuses: [404] => => HTTP status 404 ... connect ... mirrors: => 1
body: page, headers: {Content-Type: text/html; charset=utf-8} => => answers with a web page => 1
body: empty => => is empty => 1
statuses: [302], headers: {Location: 'file:///etc/passwd'} => => no source gives this file => 1
statuses: [302, 302, 302, 302], headers: {Location: 'http://h:port/a'} => => no source gives => 4
statuses: [302, 302, 302, 302, 302], headers: {Location: /a.en} => => infinite loop => 5
"""


@pytest.mark.parametrize(("habits", "known", "words", "answers"), rows(WRONG_FILES))
def test_what_is_not_the_file_is_refused_and_leaves_none(
    download: Download, habits: str, known: str, words: str, answers: str
) -> None:
    download.serve(habits)
    given = {known: KNOWN[known]} if known else {}
    message = download.refused(waits=WAITS, **given)
    says(message, download.url, words)
    assert len(download.server.answers) == int(answers)
    assert not download.output.exists()
    assert bool(download.names) == ("cut after" in message)  # of a part


WITHOUT_CHECKSUM = """
a.en => body: gzip, headers: {Content-Encoding: gzip} => encoded by gzip, which was not asked => 1
a.tar => headers: {Content-Encoding: br} => encoded by br => 1
a.en.gz => body: twice, headers: {Content-Encoding: gzip} => compressed by gzip twice => 1
a.en => body: xhtml => (is a web page); see what a browser => 1
a.en => body: script, headers: {Content-Type: text/plain} => is a web page => 1
a.tgz => body: html => is a web page => 1
a.en => headers: {Content-Type: application/xhtml+xml} => with a web page => 1
a.tgz => body: json => not a gzip file => 1
a.en.xz => body: gzip => not a xz file => 1
a.zip => body: gzip => not a zip file => 1
a.tar => body: gzip => a damaged header => 1
a.zip => body: spoilt zip => damaged => 1
a.en.zst => body: spoilt zst => damaged => 1
a.en => has_length: false, cuts: [9, 9, 9, 9] => without a length => 1
a.en.gz => body: gzip, has_length: false, cuts: [20, 20, 20, 20] => gzip data ends => 4
a.zip => body: zip, has_length: false, cuts: [99, 99, 99, 99] => zip => 4
a.en => is_chunked: true, cuts: [9, 9, 9, 9] => was cut => 4
a.en.gz => body: gzip, headers: {Content-Encoding: x-gzip} => => 1
a.en => headers: {Content-Encoding: identity} => => 1
a.html => body: xhtml, headers: {Content-Type: text/html} => => 1
a.sgm => body: sgml => => 1
a.xml => body: xml => => 1
a.en => is_chunked: true => => 1
a.en.gz => body: gzip, has_length: false, cuts: [20] => => 2
a.en.xz => body: xz, has_length: false, cuts: [99999] => => 2
"""


@pytest.mark.parametrize(("name", "habits", "words", "answers"), rows(WITHOUT_CHECKSUM))
def test_without_a_checksum_the_content_has_to_vouch(
    download: Download, name: str, habits: str, words: str, answers: str
) -> None:
    """Where no words are said, the file is taken."""
    download.name = name
    download.serve(habits)
    if words:
        says(download.refused(waits=WAITS), download.url, words)
        assert not download.output.exists()
    else:
        body = download.server.files[f"/{name}"].body
        download.bring(waits=WAITS, body=body)
    assert len(download.server.answers) == int(answers)


def test_an_archive_that_is_replaced_under_its_tag_is_downloaded_again(
    download: Download,
) -> None:
    """The archive's own checksum tells that it was pieced together of two."""
    download.name = "a.zip"
    download.serve(f"body: spoilt zip, cuts: [150000], {TAG}")
    says(download.refused(), "cut after 150000")
    download.serve(f"body: zip, {TAG}")
    download.bring(body=BODIES["zip"], waits=(0.0,))
    assert "150000:206:" in download.sent


# Retry-After => the seconds that are waited; the program's own two are the least.
PAUSES = r"""
7 => [7]
0 => [2]
\xd9\xa7 => [2]
Sun, 22 Nov 2026 06:00:20 GMT => [20]
Sun, 22 Nov 2026 05:00:00 GMT => [2]
Sun, 22 Nov 1926 06:00:20 GMT => [2]
Mon, 23 Nov 2126 06:00:00 GMT => []
301 => []
"""


@pytest.mark.parametrize(("after", "slept"), rows(PAUSES))
def test_a_server_is_asked_again_when_it_says(
    download: Download, monkeypatch: pytest.MonkeyPatch, after: str, slept: str
) -> None:
    found: list[float] = []
    monkeypatch.setattr(transfer, "time", SimpleNamespace(sleep=found.append))
    headers = {"Retry-After": after, "Date": "Sun, 22 Nov 2026 06:00:00 GMT"}
    busy = Served(BODY, statuses=[429], headers=headers)
    download.server.serve("/a.en", busy)
    if slept == "[]":
        says(download.refused(waits=(2.0,)), "HTTP status 429", "asks to wait")
        assert len(download.server.answers) == 1
    else:
        download.bring(waits=(2.0,))
    assert found == yaml.safe_load(slept)


@pytest.mark.parametrize("record", ["", "[1]", "not json", '{"source": "elsewhere"}'])
def test_a_part_of_unknown_origin_is_not_used(download: Download, record: str) -> None:
    download.interrupt(TAG)
    download.beside(".part.json").write_text(record)
    download.bring(sha256=SHA256)
    assert download.sent == WHOLE


def test_a_part_that_is_whole_is_asked_for_nothing(download: Download) -> None:
    """Who is killed after the file has its name leaves parts of it, which go."""
    download.interrupt()
    download.beside(".part").write_bytes(BODY)
    download.bring(sha256=SHA256)
    for kind in (".part", ".part.json", ".part-mirror", ".part-mirror.json"):
        download.beside(kind).write_text("{}")
    download.bring(sha256=SHA256)
    assert download.names == ["a.en"]
    assert download.sent == ""


def test_a_cut_after_a_redirection_is_resumed(download: Download) -> None:
    there = download.serve("cuts: [70000]", "/there/b.tgz")
    download.serve(f"statuses: [302, 302], headers: {{Location: '{there}'}}")
    download.bring(sha256=SHA256, waits=WAITS)
    assert download.sent == f"0:302:0 0:200:70000 70000:302:0 {REST}"


def test_a_log_in_page_costs_nothing(download: Download) -> None:
    download.interrupt(TAG, None)
    download.serve("body: page, ranges: false, headers: {Content-Type: text/html}")
    says(download.refused(), "with a web page")
    says(download.refused(size=len(BODY)), "has 7 bytes")
    download.serve(TAG)
    download.bring()
    assert download.sent.endswith(REST)


def test_a_stale_mirror_costs_nothing_of_what_upstream_gave(download: Download) -> None:
    download.interrupt()
    mirrors = download.mirror("body: start")
    mirrors += download.folder_mirror(download.server.host, OTHER)
    download.bring(mirrors=mirrors, sha256=SHA256)
    assert download.names == ["a.en"]
    assert download.sent.endswith(REST)


def test_parts_of_several_sources_are_kept_apart_and_go_at_the_end(
    download: Download,
) -> None:
    download.interrupt()
    mirrors = download.mirror("body: other, cuts: [5000]")
    download.serve("statuses: [404]")
    says(download.refused(mirrors=mirrors, sha256=SHA256), "cut after 5000 of 200000")
    assert len(download.names) == 4
    download.bring(mirrors=download.folder_mirror(download.server.host), sha256=SHA256)
    assert download.names == ["a.en"]


def test_the_first_download_is_recorded_and_enforced(download: Download) -> None:
    download.bring()
    record = download.beside(".sha256")
    assert record.read_text() == f"{SHA256}  a.en\n"
    download.output.unlink()
    download.serve("body: other")
    says(download.refused(), f"expected {SHA256}", f"delete {record}")
    assert download.names == ["a.en.sha256"]
    record.write_text("?\n")
    says(download.refused(), f"{record}:1: expected a SHA-256")
    download.bring(body=OTHER, md5=hashlib.md5(OTHER).hexdigest())


# Mirrors


def test_mirrors_come_first_in_their_order(
    download: Download, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"{download.server.host}/a.en"
    stale = download.folder_mirror(download.server.host, OTHER)
    mirrors = [f"{download.folder}/none", *stale, *download.mirror("")]
    download.bring(mirrors=mirrors, sha256=SHA256)
    said = capsys.readouterr()
    says(said.err, f"none/{place}: No such file", f"{stale[0]}{place}: has sha256")
    says(said.err, "a.en: 100%")
    assert said.out == ""
    assert download.server.paths == [f"/mirror/{place}"]
    download.server.close()
    says(download.refused(mirrors=stale, md5="0"), "no connection: Connection refused")


def test_the_workflow_finds_a_mirror_in_the_home_folder(
    root: Path, download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(download.folder))
    download.folder_mirror("up.example")
    source = {"url": ELSEWHERE, "sha256": SHA256}
    rule = SimpleNamespace(
        input=[],
        output=[str(download.output)],
        log=[str(download.folder / "a.log")],
        config={"mirrors": ["~/mirror"]},
        params=SimpleNamespace(source=source, items=lambda: [("source", source)]),
    )
    runpy.run_path(str(root / "workflow/scripts/download_file.py"), {"snakemake": rule})
    assert download.output.read_bytes() == BODY


def test_a_generated_file_is_held_to_the_mirrors_own_checksum(
    download: Download,
) -> None:
    """Not to upstream's."""
    (mirror,) = download.folder_mirror("up.example", OTHER)
    (Path(mirror) / CHECKSUM_LIST).write_text(f"{SHA256}  up.example/a.en\n")
    given: Any = {"generated_mirror": mirror, "sha256": "0" * 64, "size": 7}
    message = download.refused(ELSEWHERE, **given)
    says(message, f"expected {SHA256}", f"delete {mirror} to renew it")
    assert not download.output.exists()
    (Path(mirror) / "up.example/a.en").write_bytes(BODY)
    download.bring(ELSEWHERE, **given)


@READS_PROC
def test_a_mirror_that_cannot_be_read_does_not_give_the_file(
    download: Download, capsys: pytest.CaptureFixture[str]
) -> None:
    mirrors = download.folder_mirror(download.server.host)
    file = Path(mirrors[0]) / download.server.host / "a.en"
    file.unlink()
    file.symlink_to("/proc/self/mem")  # can be opened; its first byte cannot be read
    download.bring(mirrors=mirrors)
    says(capsys.readouterr().err, f"{file}: Input/output error")


SECRETS = """
http://me:p%40ss@{}/m => /m/up.example/a.en => Basic bWU6cEBzcw==
http://{}/m?token=secret&path= => /m?token=secret&path=/up.example/a.en =>
"""


@pytest.mark.parametrize(("base", "path", "authorization"), rows(SECRETS))
def test_a_mirrors_secret_is_sent_to_the_mirror_and_shown_to_nobody(
    download: Download,
    capfd: pytest.CaptureFixture[str],
    base: str,
    path: str,
    authorization: str,
) -> None:
    download.serve(f"statuses: [500], cuts: [5000], {TAG}", path)
    mirrors = [base.format(download.server.host)]
    said = "".join(download.refused(ELSEWHERE, mirrors=mirrors) for _ in range(2))
    said += "".join(capfd.readouterr())
    said += download.beside(".part-mirror.json").read_text()
    says(said, f"{download.server.host}/m")
    assert not [word for word in ("secret", "me:", "p@", "p%40") if word in said]
    download.bring(ELSEWHERE, mirrors=mirrors)
    assert download.sent == "0:500:0 0:200:5000 5000:206:195000"
    assert {*download.server.authorizations} == {authorization or None}


def test_a_redirection_does_not_take_a_password_along(download: Download) -> None:
    redirects = f"statuses: [302], headers: {{Location: '{download.url}'}}"
    download.serve(redirects, "/m/up.example/a.en")
    download.bring(ELSEWHERE, mirrors=[f"http://me:secret@{download.server.host}/m"])
    headers = download.server.authorizations
    assert [bool(header) for header in headers] == [True, False]


NO_ADDRESSES = """
http://me:se/secret@h/m => %2F
http://me:se secret@h => %20
http://me:secret?@h => %3F
s3://bucket => s3://bucket: expected a folder or an http
"""


def test_a_mirror_that_is_no_address_is_refused_unseen(download: Download) -> None:
    for base, word in rows(NO_ADDRESSES):
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


PLACES_OUTSIDE = r"""
http://../a
http://h/./a
http://h//etc/passwd
http://h/a/
http://h/
http:///a
http://h/a?b=1
http://h/a#b
http://name:secret@h/a
http://[h/a
http://h/a b
http://h/\na
http://h/\\a
http://h/\xe9
ftp://h/a
demo://../a
/etc/passwd
"""


def test_no_address_leads_out_of_the_downloads(tmp_path: Path) -> None:
    for [url] in [*rows(PLACES_OUTSIDE), [""]]:
        refusal(local_path, url, tmp_path)
        refusal(download_file, url, tmp_path / "downloads/a.en")
        assert list(tmp_path.iterdir()) == []


# Two at once


def at_once(*functions: Callable[[], object]) -> None:
    """Call functions in a thread each; locks of the kernel's are those of open files."""
    with ThreadPoolExecutor(len(functions)) as pool:
        for call in [pool.submit(function) for function in functions]:
            call.result(60)


def test_of_several_processes_one_brings_the_file(download: Download) -> None:
    download.serve("pause: 0.03")
    mirrors = download.mirror("pause: 0.03")
    at_once(download.bring, lambda: download.bring(mirrors=mirrors))
    assert download.sent == WHOLE


def test_who_waited_brings_what_the_other_could_not(download: Download) -> None:
    download.serve("cuts: [70000], pause: 0.03")

    def go_on() -> None:
        wait_for(download.beside(".part").exists)
        download.bring(sha256=SHA256)

    at_once(download.refused, go_on)
    assert download.sent == f"0:200:70000 {REST}"


def test_more_than_the_server_said_is_fetched_again(download: Download) -> None:
    """Without locks another process may write to the same part."""
    download.serve("pause: 0.03")

    def intrude() -> None:
        wait_for(download.beside(".part").exists)
        with download.beside(".part").open("ab") as part:
            part.write(b"of another process")

    at_once(lambda: download.bring(waits=(0.0,)), intrude)


def test_a_published_ledger_is_fetched_once_and_again_where_it_is_damaged(
    download: Download, tmp_path: Path
) -> None:
    options = Options(published=download.url)
    place = local_path(download.url, tmp_path)
    for _ in range(2):
        assert published_file(options, tmp_path) == place
    assert download.sent == WHOLE
    place.write_bytes(OTHER)
    published_file(options, tmp_path)
    assert place.read_bytes() == BODY
    place.with_name("a.en.sha256").unlink()  # somebody else has laid it there
    place.write_bytes(OTHER)
    published_file(options, tmp_path)
    assert place.read_bytes() == OTHER
