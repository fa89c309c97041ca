import hashlib
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.data import transfer
from convs2s.data.download import download, local_path
from convs2s.errors import UserError
from tests.faults.loopback import Answer, LoopbackServer, Served

BODY = random.Random(1).randbytes(200_000)
OTHER = random.Random(2).randbytes(200_000)
SHA256 = hashlib.sha256(BODY).hexdigest()
MD5 = hashlib.md5(BODY).hexdigest()
WAITS = (0.0, 0.0, 0.0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """A web server that this process reaches without any proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    running = LoopbackServer()
    yield running
    running.close()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "downloads" / "a.tgz"


def names(output: Path) -> list[str]:
    """Return what lies in the output's folder."""
    return sorted(path.name for path in output.parent.glob("*"))


def sent(server: LoopbackServer) -> list[tuple[int | None, int, int]]:
    """Return the start, status and bytes of each answer."""
    return [(answer.start, answer.status, answer.sent) for answer in server.answers]


def interrupt(server: LoopbackServer, url: str, output: Path, sha256: str | None = SHA256) -> None:
    """Run a download that ends with the first 70,000 bytes in the part."""
    path = "/" + url.split("/", 3)[3]
    server.files[path].cuts = [70_000]
    with pytest.raises(UserError, match="cut after 70000 of 200000 bytes"):
        download(url, output, sha256=sha256, waits=())
    assert names(output) == ["a.tgz.part", "a.tgz.part.json"]
    server.answers.clear()


# A sound server


@pytest.mark.parametrize("has_length", [True, False])
def test_a_file_comes_whole(server: LoopbackServer, output: Path, has_length: bool) -> None:
    url = server.serve("/a.tgz", Served(BODY, has_length=has_length))
    download(url, output, sha256=SHA256.upper(), md5=MD5, size=len(BODY))
    assert output.read_bytes() == BODY
    assert names(output) == ["a.tgz"]
    assert server.answers == [Answer("/a.tgz", None, 200, len(BODY))]


def test_progress_goes_to_stderr(
    server: LoopbackServer, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    download(server.serve("/a.tgz", Served(BODY)), output, sha256=SHA256)
    captured = capsys.readouterr()
    assert "a.tgz: 100%" in captured.err
    assert captured.out == ""


def test_redirections_are_followed(server: LoopbackServer, output: Path) -> None:
    there = server.serve("/there/b.tgz", Served(BODY))
    download(server.serve("/a.tgz", Served(b"", redirect=there)), output, sha256=SHA256)
    assert output.read_bytes() == BODY


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/a.tgz"])
def test_redirections_to_other_schemes_are_not(
    server: LoopbackServer, output: Path, target: str
) -> None:
    url = server.serve("/a.tgz", Served(b"", redirect=target))
    with pytest.raises(UserError, match="no source gives this file"):
        download(url, output, waits=WAITS)
    assert names(output) == []


def test_a_redirection_to_itself_ends(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(b""))
    server.files["/a.tgz"].redirect = url
    with pytest.raises(UserError, match="infinite loop"):
        download(url, output, waits=WAITS)


# A failing server


def test_a_cut_connection_is_resumed(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY, cuts=[70_000, 50_000]))
    download(url, output, sha256=SHA256, waits=(0.0,))
    assert output.read_bytes() == BODY
    assert sent(server) == [(None, 200, 70_000), (70_000, 206, 50_000), (120_000, 206, 80_000)]


def test_without_ranges_it_starts_over(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY, ranges=False, cuts=[70_000]))
    download(url, output, sha256=SHA256, waits=WAITS)
    assert output.read_bytes() == BODY
    assert sent(server) == [(None, 200, 70_000), (70_000, 200, 200_000)]


def test_silence_counts_as_a_cut(
    server: LoopbackServer, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_SILENCE_SECONDS", 0.3)
    url = server.serve("/a.tgz", Served(BODY, cuts=[70_000], is_silent=True))
    download(url, output, sha256=SHA256, waits=WAITS)
    assert output.read_bytes() == BODY
    assert sent(server)[1] == (70_000, 206, 130_000)


def test_the_next_run_resumes(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    download(url, output, sha256=SHA256)
    assert output.read_bytes() == BODY
    assert names(output) == ["a.tgz"]
    assert sent(server) == [(70_000, 206, 130_000)]


def test_a_run_killed_before_the_renaming_asks_for_nothing(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    (output.parent / "a.tgz.part").write_bytes(BODY)
    download(url, output, sha256=SHA256)
    assert output.read_bytes() == BODY
    assert sent(server) == []


def test_a_killed_download_goes_on(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY, cuts=[70_000], is_silent=True))
    code = (
        "import pathlib, sys; from convs2s.data.download import download\n"
        "download(sys.argv[1], pathlib.Path(sys.argv[2]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, url, str(output)])
    unfinished = output.parent / "a.tgz.part"
    while process.poll() is None and not (unfinished.exists() and unfinished.stat().st_size):
        time.sleep(0.01)
    process.kill()
    process.wait()
    held = unfinished.stat().st_size
    assert 0 < held <= 70_000
    assert not output.exists()
    server.answers.clear()
    download(url, output, sha256=SHA256)
    assert output.read_bytes() == BODY
    assert sent(server) == [(held, 206, len(BODY) - held)]


@pytest.mark.parametrize("record", ["", "{}", "[1]", "not json", '{"source": "elsewhere"}'])
def test_a_part_of_unknown_origin_is_not_used(
    server: LoopbackServer, output: Path, record: str
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    (output.parent / "a.tgz.part.json").write_text(record)
    download(url, output, sha256=SHA256)
    assert output.read_bytes() == BODY
    assert sent(server) == [(None, 200, 200_000)]


@pytest.mark.parametrize("statuses", [[503], [500, 502, 429]])
def test_a_busy_server_is_asked_again(
    server: LoopbackServer, output: Path, statuses: list[int]
) -> None:
    url = server.serve("/a.tgz", Served(BODY, statuses=list(statuses)))
    download(url, output, sha256=SHA256, waits=WAITS)
    assert output.read_bytes() == BODY
    assert [answer.status for answer in server.answers] == [*statuses, 200]


def test_a_server_that_stays_busy_is_given_up(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY, statuses=[503] * 9))
    with pytest.raises(UserError, match=r"HTTP status 503 .*, also when asked again"):
        download(url, output, sha256=SHA256, waits=WAITS)
    assert len(server.answers) == 1 + len(WAITS)


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_missing_file_is_asked_for_once(
    server: LoopbackServer, output: Path, status: int
) -> None:
    url = server.serve("/a.tgz", Served(BODY, statuses=[status]))
    with pytest.raises(UserError, match=f"HTTP status {status}"):
        download(url, output, sha256=SHA256, waits=WAITS)
    assert len(server.answers) == 1
    assert names(output) == []


def test_no_network_and_no_mirror_is_one_clear_line(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/wmt14/a.tgz", Served(BODY))
    server.close()
    with pytest.raises(UserError) as caught:
        download(url, output, mirrors=[str(output.parent / "mirror")], waits=WAITS)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{url}: no source gives this file: ")
    assert f"mirror/{server.host}/wmt14/a.tgz (No such file or directory); " in message
    assert f"{url} (no connection: Connection refused)" in message
    assert f"`mirrors:` in config.local.yaml to a folder or base URL that holds {server.host}/" in (
        message
    )


# Another file than the expected one


@pytest.mark.parametrize("known", [{"sha256": SHA256}, {"md5": MD5}])
def test_a_wrong_checksum_is_refused(
    server: LoopbackServer, output: Path, known: dict[str, str]
) -> None:
    url = server.serve("/a.tgz", Served(OTHER))
    (expected,) = known.values()
    got = hashlib.new(next(iter(known)), OTHER).hexdigest()
    with pytest.raises(UserError, match=f"has {next(iter(known))} {got}, expected {expected}") as e:
        download(url, output, sha256=known.get("sha256"), md5=known.get("md5"), waits=WAITS)
    assert "config/downloads.yaml" in str(e.value)
    assert len(server.answers) == 1
    assert names(output) == []


def test_another_announced_size_is_refused_unread(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY + b"more"))
    with pytest.raises(UserError, match="has 200004 bytes, expected 200000"):
        download(url, output, sha256=SHA256, size=len(BODY), waits=WAITS)
    assert names(output) == []


def test_more_bytes_than_expected_are_refused(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY * 20, has_length=False))
    with pytest.raises(UserError, match="has more than the expected 200000 bytes"):
        download(url, output, size=len(BODY), waits=WAITS)
    assert names(output) == []


def test_fewer_bytes_than_announced_are_never_a_file(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY, ranges=False, announced=200_007))
    with pytest.raises(UserError, match="cut after 200000 of 200007 bytes, also when asked again"):
        download(url, output, waits=WAITS)
    assert not output.exists()


def test_fewer_bytes_than_expected_are_never_a_file(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY, has_length=False, cuts=[7, 0, 0, 0, 0]))
    with pytest.raises(UserError, match="cut after 7 of 200000 bytes"):
        download(url, output, size=len(BODY), sha256=SHA256, waits=WAITS)
    assert not output.exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"etag": '"1"'}, {"etag": '"2"'}),
        ({"last_modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, {"last_modified": "Tue, 02 Jan 2024"}),
        ({"etag": '"1"'}, {"etag": '"1"', "body": OTHER + b"longer"}),
        ({}, {}),  # neither: only the checksum tells
        ({}, {"wrong_range": True}),
    ],
)
def test_content_that_changes_between_runs_starts_over(
    server: LoopbackServer, output: Path, before: dict[str, str], after: dict[str, str]
) -> None:
    url = server.serve("/a.tgz", Served(BODY, etag=before.get("etag")))
    server.files["/a.tgz"].last_modified = before.get("last_modified")
    interrupt(server, url, output)
    changed = Served(OTHER)
    for name, value in after.items():
        setattr(changed, name, value)
    server.serve("/a.tgz", changed)
    download(url, output, sha256=hashlib.sha256(changed.body).hexdigest(), waits=WAITS)
    assert output.read_bytes() == changed.body
    assert [start for start, _, _ in sent(server)] == [70_000, None]


def test_without_checksum_and_tags_nothing_is_resumed(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output, sha256=None)
    download(url, output, waits=WAITS)
    assert output.read_bytes() == BODY
    assert [start for start, _, _ in sent(server)] == [70_000, None]


def test_a_file_that_has_become_shorter_starts_over(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    short = BODY[:100]
    server.serve("/a.tgz", Served(short))
    download(url, output, sha256=hashlib.sha256(short).hexdigest(), waits=WAITS)
    assert output.read_bytes() == short
    assert [status for _, status, _ in sent(server)] == [416, 200]


def test_an_endless_wrong_file_ends(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(OTHER, cuts=[100_000, 200_000] * 20))
    with pytest.raises(UserError, match="has sha256"):
        download(url, output, sha256=SHA256, waits=WAITS)
    assert len(server.answers) < 12
    assert not output.exists()


# Trust on first use


def test_the_first_download_is_recorded_and_enforced(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    download(url, output)
    record = output.parent / "a.tgz.sha256"
    assert record.read_text() == f"{SHA256}  a.tgz\n"
    output.unlink()
    download(url, output)
    assert output.read_bytes() == BODY
    output.unlink()
    server.serve("/a.tgz", Served(OTHER))
    with pytest.raises(UserError, match=f"expected {SHA256}.*delete .*a.tgz.sha256"):
        download(url, output, waits=WAITS)
    assert names(output) == ["a.tgz.sha256"]
    record.unlink()
    download(url, output)
    assert output.read_bytes() == OTHER


def test_a_known_checksum_needs_no_record(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    output.parent.mkdir()
    (output.parent / "a.tgz.sha256").write_text("0" * 64 + "  a.tgz\n")
    download(url, output, md5=MD5)
    assert output.read_bytes() == BODY


def test_a_damaged_record_is_named(server: LoopbackServer, output: Path) -> None:
    output.parent.mkdir()
    (output.parent / "a.tgz.sha256").write_text("?\n")
    with pytest.raises(UserError, match=r"a\.tgz\.sha256:1: expected a SHA-256"):
        download(server.serve("/a.tgz", Served(BODY)), output)


def test_a_web_page_is_not_taken_for_the_file(server: LoopbackServer, output: Path) -> None:
    page = Served(b"<html>please log in</html>", content_type="text/html; charset=utf-8")
    with pytest.raises(UserError, match="answers with a web page"):
        download(server.serve("/a.tgz", page), output, waits=WAITS)
    assert names(output) == []


# Mirrors


def test_mirrors_come_first_in_their_order(
    server: LoopbackServer, tmp_path: Path, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://www.statmt.invalid/wmt14/a.tgz"
    place = "www.statmt.invalid/wmt14/a.tgz"
    base = server.serve(f"/mirror/{place}", Served(BODY)).removesuffix(f"/{place}")
    stale = tmp_path / "stale" / place
    stale.parent.mkdir(parents=True)
    stale.write_bytes(OTHER)
    mirrors = [str(tmp_path / "none"), f"{tmp_path}/stale/", base]
    download(url, output, mirrors=mirrors, sha256=SHA256, waits=WAITS)
    assert output.read_bytes() == BODY
    assert names(output) == ["a.tgz"]
    errors = capsys.readouterr().err
    assert f"{tmp_path}/none/{place}: No such file or directory\n" in errors
    assert f"{stale}: has sha256 " in errors


def test_a_folder_mirror_needs_no_network(tmp_path: Path, output: Path) -> None:
    (tmp_path / "h" / "p").mkdir(parents=True)
    (tmp_path / "h" / "p" / "a.tgz").write_bytes(BODY)
    download("https://h/p/a.tgz", output, mirrors=[str(tmp_path)], size=len(BODY))
    assert output.read_bytes() == BODY
    assert names(output) == ["a.tgz", "a.tgz.sha256"]


def test_bytes_of_one_source_are_not_continued_from_another(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    base = server.serve(f"/mirror/{server.host}/a.tgz", Served(OTHER, cuts=[70_000] + [0] * 3))
    mirrors = [base.removesuffix(f"/{server.host}/a.tgz")]
    download(url, output, mirrors=mirrors, sha256=SHA256, waits=WAITS)
    assert output.read_bytes() == BODY
    assert server.answers[-1] == Answer("/a.tgz", None, 200, 200_000)


def test_a_mirror_of_another_kind_is_refused(output: Path) -> None:
    with pytest.raises(UserError, match="expected a folder or an http"):
        download("http://h/a.tgz", output, mirrors=["s3://bucket"])


# Disk


def test_free_space_is_checked_first(
    server: LoopbackServer, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(UserError, match="200000 more bytes to download, 1000 are free"):
        download(server.serve("/a.tgz", Served(BODY)), output, sha256=SHA256, waits=WAITS)
    assert not output.exists()


def test_the_part_says_where_it_comes_from(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY, etag='"1"'))
    interrupt(server, url, output)
    record = json.loads((output.parent / "a.tgz.part.json").read_text())
    assert record == {"source": url, "etag": '"1"', "last_modified": None, "size": 200_000}


# Places


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://www.statmt.org/wmt13/a.tgz", "www.statmt.org/wmt13/a.tgz"),
        ("https://h:8080/a.tgz", "h:8080/a.tgz"),
        ("https://h/%2e%2e/a.tgz", "h/%2e%2e/a.tgz"),
        ("demo://en_fr/train.en", "demo/en_fr/train.en"),
    ],
)
def test_local_path(url: str, place: str) -> None:
    assert local_path(url, Path("results/downloads")) == Path("results/downloads") / place


@pytest.mark.parametrize(
    "url",
    [
        "http://h/../../etc/passwd",
        "http://../a",
        "http://h/./a",
        "http://h//etc/passwd",
        "http://h/a/",
        "http://h/",
        "http://h",
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
        "file:///etc/passwd",
        "demo://../a",
        "/etc/passwd",
        "",
    ],
)
def test_local_path_refuses(url: str, output: Path) -> None:
    with pytest.raises(UserError):
        local_path(url, Path("results/downloads"))
    with pytest.raises(UserError):
        download(url, output)
    assert not output.parent.exists()


def test_demo_urls_are_not_downloaded(output: Path) -> None:
    with pytest.raises(UserError, match="only http and https"):
        download("demo://en_fr/train.en", output)


# The real mirror


def test_multi30k_from_the_mirror_has_upstreams_checksums(shared: Path, tmp_path: Path) -> None:
    rows = (shared / "spec/archives.tsv").read_text("utf-8").splitlines()
    records = [row.split("\t") for row in rows if "multi30k" in row]
    assert len(records) == 12
    for url, size, sha256, *_ in records:
        output = local_path(url, tmp_path)
        download(url, output, mirrors=[str(shared / "mirror")], sha256=sha256, size=int(size))
        assert hashlib.sha256(output.read_bytes()).hexdigest() == sha256
