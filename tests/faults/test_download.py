"""Downloads from sound, slow, cut and busy servers."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from convs2s.download import transfer
from convs2s.download.download import download_file
from convs2s.errors import UserError
from tests.support.downloads import (
    BODY,
    MD5,
    OTHER,
    SHA256,
    WAITS,
    interrupt,
    mirror,
    names,
    sent,
)
from tests.support.loopback import Answer, LoopbackServer, Served

# A sound server


@pytest.mark.parametrize("has_length", [True, False])
def test_a_file_comes_whole(
    server: LoopbackServer, output: Path, has_length: bool
) -> None:
    url = server.serve("/a.tgz", Served(BODY, has_length=has_length))
    download_file(url, output, sha256=SHA256.upper(), md5=MD5, size=len(BODY))
    assert output.read_bytes() == BODY
    assert names(output) == ["a.tgz"]
    assert server.answers == [Answer("/a.tgz", None, 200, len(BODY))]


def test_progress_goes_to_stderr(
    server: LoopbackServer, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    download_file(server.serve("/a.tgz", Served(BODY)), output, sha256=SHA256)
    captured = capsys.readouterr()
    assert "a.tgz: 100%" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/a.tgz",
        "http://[x/a",
        "http://127.0.0.1:port/a",
    ],
)
def test_redirections_to_other_schemes_are_not(
    server: LoopbackServer, output: Path, target: str
) -> None:
    url = server.serve("/a.tgz", Served(b"", redirect=target))
    with pytest.raises(UserError, match="no source gives this file"):
        download_file(url, output, waits=WAITS)
    assert names(output) == []


def test_a_redirection_to_itself_ends(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(b""))
    server.files["/a.tgz"].redirect = url
    with pytest.raises(UserError, match="infinite loop"):
        download_file(url, output, waits=WAITS)


# A failing server


@pytest.mark.parametrize(
    ("cuts", "habits", "later"),
    [
        ((70_000, 50_000), {}, [(70_000, 206, 50_000), (120_000, 206, 80_000)]),
        ((70_000,), {"ranges": False}, [(70_000, 200, 200_000)]),
        ((70_000,), {"is_silent": True}, [(70_000, 206, 130_000)]),
    ],
    ids=["resumed", "without ranges it starts over", "silence counts as a cut"],
)
def test_a_cut_answer_is_asked_for_again(
    server: LoopbackServer,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    cuts: tuple[int, ...],
    habits: dict[str, Any],
    later: list[tuple[int, int, int]],
) -> None:
    monkeypatch.setattr(transfer, "_SILENCE_SECONDS", 0.3)
    url = server.serve("/a.tgz", Served(BODY, cuts=list(cuts), **habits))
    download_file(url, output, sha256=SHA256, waits=(0.0,))
    assert output.read_bytes() == BODY
    assert sent(server) == [(None, 200, 70_000), *later]


@pytest.mark.parametrize("has_length", [True, False])
def test_a_cut_is_seen_by_the_end_of_the_range_alone(
    server: LoopbackServer, output: Path, has_length: bool
) -> None:
    served = Served(BODY, etag='"1"', hides_size=True)
    url = server.serve("/a.tgz", served)
    interrupt(server, url, output, sha256=None)
    served.cuts, served.has_length = [50_000], has_length
    download_file(url, output, waits=(0.0,))
    assert output.read_bytes() == BODY
    assert sent(server) == [(70_000, 206, 50_000), (120_000, 206, 80_000)]


def test_a_slow_server_is_waited_for(
    server: LoopbackServer, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_SILENCE_SECONDS", 0.3)
    url = server.serve("/a.tgz", Served(BODY, pause=0.05))
    download_file(url, output, sha256=SHA256, waits=())
    assert output.read_bytes() == BODY
    assert sent(server) == [(None, 200, 200_000)]


def test_a_cut_after_a_redirection_is_resumed(
    server: LoopbackServer, output: Path
) -> None:
    there = server.serve("/there/b.tgz", Served(BODY, cuts=[70_000]))
    url = server.serve("/a.tgz", Served(b"", redirect=there))
    download_file(url, output, sha256=SHA256, waits=WAITS)
    assert output.read_bytes() == BODY
    gave = [answer for answer in sent(server) if answer[1] != 302]
    assert gave == [(None, 200, 70_000), (70_000, 206, 130_000)]


def test_the_next_run_resumes(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    download_file(url, output, sha256=SHA256)
    assert output.read_bytes() == BODY
    assert names(output) == ["a.tgz"]
    assert sent(server) == [(70_000, 206, 130_000)]


def test_a_run_killed_before_the_renaming_asks_for_nothing(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    (output.parent / "a.tgz.part").write_bytes(BODY)
    download_file(url, output, sha256=SHA256)
    assert output.read_bytes() == BODY
    assert sent(server) == []


def test_a_killed_download_goes_on(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY, cuts=[70_000], is_silent=True))
    code = (
        "import pathlib, sys; from convs2s.download.download import download_file\n"
        "download_file(sys.argv[1], pathlib.Path(sys.argv[2]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, url, str(output)])
    unfinished = output.parent / "a.tgz.part"
    while process.poll() is None and not (
        unfinished.exists() and unfinished.stat().st_size
    ):
        time.sleep(0.01)
    process.kill()
    process.wait()
    held = unfinished.stat().st_size
    assert 0 < held <= 70_000
    assert not output.exists()
    server.answers.clear()
    download_file(url, output, sha256=SHA256)
    assert output.read_bytes() == BODY
    assert sent(server) == [(held, 206, len(BODY) - held)]


@pytest.mark.parametrize(
    "record", ["", "{}", "[1]", "not json", '{"source": "elsewhere"}']
)
def test_a_part_of_unknown_origin_is_not_used(
    server: LoopbackServer, output: Path, record: str
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    (output.parent / "a.tgz.part.json").write_text(record)
    download_file(url, output, sha256=SHA256)
    assert output.read_bytes() == BODY
    assert sent(server) == [(None, 200, 200_000)]


# Wrong answers leave the bytes so far


@pytest.mark.parametrize(
    ("known", "wrong", "said"),
    [
        ({}, {"content_type": "text/html"}, "answers with a web page"),
        (
            {"size": 200_000},
            {"content_type": "text/html"},
            "has 9 bytes, expected 200000",
        ),
        ({"size": 200_000}, {}, "has 9 bytes, expected 200000"),
    ],
)
@pytest.mark.parametrize("sha256", [SHA256, None])
def test_a_log_in_page_costs_nothing(
    server: LoopbackServer,
    output: Path,
    known: dict[str, int],
    wrong: dict[str, Any],
    said: str,
    sha256: str | None,
) -> None:
    url = server.serve("/a.tgz", Served(BODY, etag='"1"'))
    interrupt(server, url, output, sha256=sha256)
    server.serve("/a.tgz", Served(b"<html/>\r\n", ranges=False, **wrong))
    with pytest.raises(UserError, match=said):
        download_file(url, output, sha256=sha256, size=known.get("size"), waits=WAITS)
    assert (output.parent / "a.tgz.part").read_bytes() == BODY[:70_000]
    server.serve("/a.tgz", Served(BODY, etag='"1"'))
    server.answers.clear()
    download_file(url, output, sha256=sha256)
    assert output.read_bytes() == BODY
    assert sent(server) == [(70_000, 206, 130_000)]


@pytest.mark.parametrize("stale", [OTHER, OTHER[:60]], ids=["as long", "shorter"])
@pytest.mark.parametrize("size", [200_000, None])
@pytest.mark.parametrize("is_folder", [True, False])
def test_a_stale_mirror_costs_nothing_of_what_upstream_gave(
    server: LoopbackServer,
    tmp_path: Path,
    output: Path,
    stale: bytes,
    size: int | None,
    is_folder: bool,
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    base = mirror(server, Served(stale))
    (tmp_path / server.host).mkdir()
    (tmp_path / server.host / "a.tgz").write_bytes(stale)
    mirrors = [str(tmp_path) if is_folder else base]
    download_file(url, output, mirrors=mirrors, sha256=SHA256, size=size, waits=WAITS)
    assert output.read_bytes() == BODY
    assert names(output) == ["a.tgz"]
    assert server.answers[-1] == Answer("/a.tgz", 70_000, 206, 130_000)


def test_what_other_sources_gave_goes_at_the_end(
    server: LoopbackServer, tmp_path: Path, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    base = mirror(server, Served(BODY, cuts=[5000]))
    server.files["/a.tgz"].statuses = [404]
    with pytest.raises(UserError, match="cut after 5000 of 200000 bytes"):
        download_file(url, output, mirrors=[base], sha256=SHA256, waits=())
    assert len(names(output)) == 4
    (tmp_path / server.host).mkdir()
    (tmp_path / server.host / "a.tgz").write_bytes(BODY)
    download_file(url, output, mirrors=[str(tmp_path)], sha256=SHA256)
    assert names(output) == ["a.tgz"]


@pytest.mark.parametrize("statuses", [[503], [500, 502, 429]])
def test_a_busy_server_is_asked_again(
    server: LoopbackServer, output: Path, statuses: list[int]
) -> None:
    url = server.serve("/a.tgz", Served(BODY, statuses=list(statuses)))
    download_file(url, output, sha256=SHA256, waits=WAITS)
    assert output.read_bytes() == BODY
    assert [answer.status for answer in server.answers] == [*statuses, 200]


def test_a_server_that_stays_busy_is_given_up(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY, statuses=[503] * 9))
    with pytest.raises(UserError, match=r"HTTP status 503 .*, also when asked again"):
        download_file(url, output, sha256=SHA256, waits=WAITS)
    assert len(server.answers) == 1 + len(WAITS)


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_missing_file_is_asked_for_once(
    server: LoopbackServer, output: Path, status: int
) -> None:
    url = server.serve("/a.tgz", Served(BODY, statuses=[status]))
    with pytest.raises(UserError, match=f"HTTP status {status}"):
        download_file(url, output, sha256=SHA256, waits=WAITS)
    assert len(server.answers) == 1
    assert names(output) == []


def test_no_network_and_no_mirror_is_one_clear_line(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/wmt14/a.tgz", Served(BODY))
    server.close()
    with pytest.raises(UserError) as caught:
        download_file(url, output, mirrors=[str(output.parent / "mirror")], waits=WAITS)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{url}: no source gives this file: ")
    assert f"mirror/{server.host}/wmt14/a.tgz (No such file or directory); " in message
    assert f"{url} (no connection: Connection refused)" in message
    assert (
        f"`mirrors:` in config.local.yaml to a folder or base URL that holds {server.host}/"
        in (message)
    )
