"""Downloads of other files than the expected one, checksums, and mirrors."""

import base64
import hashlib
import json
import runpy
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from convs2s.config.file_reference import local_path
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

# Another file than the expected one


@pytest.mark.parametrize("known", [{"sha256": SHA256}, {"md5": MD5}])
def test_a_wrong_checksum_is_refused(
    server: LoopbackServer, output: Path, known: dict[str, str]
) -> None:
    url = server.serve("/a.tgz", Served(OTHER))
    (expected,) = known.values()
    got = hashlib.new(next(iter(known)), OTHER).hexdigest()
    with pytest.raises(
        UserError, match=f"has {next(iter(known))} {got}, expected {expected}"
    ) as e:
        download_file(
            url, output, sha256=known.get("sha256"), md5=known.get("md5"), waits=WAITS
        )
    assert "config/downloads.yaml" in str(e.value)
    assert len(server.answers) == 1
    assert names(output) == []


def test_another_announced_size_is_refused_unread(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY + b"more"))
    with pytest.raises(UserError, match="has 200004 bytes, expected 200000"):
        download_file(url, output, sha256=SHA256, size=len(BODY), waits=WAITS)
    assert names(output) == []


def test_more_bytes_than_expected_are_refused(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY * 20, has_length=False))
    with pytest.raises(UserError, match="has more than the expected 200000 bytes"):
        download_file(url, output, size=len(BODY), waits=WAITS)
    assert names(output) == []


def test_fewer_bytes_than_announced_are_never_a_file(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY, ranges=False, announced=200_007))
    with pytest.raises(
        UserError, match="cut after 200000 of 200007 bytes, also when asked again"
    ):
        download_file(url, output, waits=WAITS)
    assert not output.exists()


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"size": 200_000}, "has 199993 bytes, expected 200000"),
        ({"sha256": SHA256}, "has sha256 "),
    ],
)
def test_a_length_that_is_too_short_is_noticed(
    server: LoopbackServer, output: Path, known: dict[str, Any], said: str
) -> None:
    url = server.serve("/a.tgz", Served(BODY, announced=199_993))
    with pytest.raises(UserError, match=said):
        download_file(url, output, waits=WAITS, **known)
    assert names(output) == []


def test_fewer_bytes_than_expected_are_never_a_file(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY, has_length=False, cuts=[7, 0, 0, 0, 0]))
    with pytest.raises(UserError, match="cut after 7 of 200000 bytes"):
        download_file(url, output, size=len(BODY), sha256=SHA256, waits=WAITS)
    assert not output.exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"etag": '"1"'}, {"etag": '"2"'}),
        (
            {"last_modified": "Mon, 01 Jan 2024 00:00:00 GMT"},
            {"last_modified": "Tue, 02 Jan 2024"},
        ),
        ({"etag": '"1"'}, {"etag": '"1"', "body": OTHER + b"longer"}),
        ({}, {}),  # neither: only the checksum tells
        ({}, {"wrong_range": True}),
    ],
)
def test_content_that_changes_between_runs_starts_over(
    server: LoopbackServer, output: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    url = server.serve("/a.tgz", Served(BODY, **before))
    interrupt(server, url, output)
    changed = Served(**({"body": OTHER} | after))
    server.serve("/a.tgz", changed)
    download_file(
        url, output, sha256=hashlib.sha256(changed.body).hexdigest(), waits=WAITS
    )
    assert output.read_bytes() == changed.body
    assert [start for start, _, _ in sent(server)] == [70_000, None]


def test_without_checksum_a_changed_tag_starts_over(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY, etag='"1"'))
    interrupt(server, url, output, sha256=None)
    server.serve("/a.tgz", Served(OTHER, etag='"2"'))
    download_file(url, output, waits=WAITS)
    assert output.read_bytes() == OTHER


def test_without_checksum_and_tags_nothing_is_resumed(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output, sha256=None)
    download_file(url, output, waits=WAITS)
    assert output.read_bytes() == BODY
    assert [start for start, _, _ in sent(server)] == [70_000, None]


@pytest.mark.parametrize("last_modified", [None, "Sun, 22 Nov 2026 06:00:00 GMT"])
def test_without_checksum_a_weak_tag_resumes_nothing(
    server: LoopbackServer, output: Path, last_modified: str | None
) -> None:
    weak = 'W/"1"'
    url = server.serve(
        "/a.tgz", Served(BODY, etag=weak, last_modified=last_modified, cuts=[5000])
    )
    with pytest.raises(UserError):
        download_file(url, output, waits=())
    server.serve("/a.tgz", Served(OTHER, etag=weak, last_modified=last_modified))
    download_file(url, output, waits=(0,))
    assert output.read_bytes() == OTHER


def test_an_empty_answer_is_never_recorded_as_the_file(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(b""))
    with pytest.raises(UserError, match="is empty"):
        download_file(url, output, waits=())
    assert not [
        path for path in output.parent.iterdir() if path.name.startswith(output.name)
    ]


def test_a_mirrors_password_is_sent_to_the_mirror_and_shown_to_nobody(
    server: LoopbackServer, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    token = base64.b64encode(b"me:p@ss").decode()
    server.serve(
        "/m/up.example/a.tgz",
        Served(b"", authorization=f"Basic {token}", statuses=[500]),
    )
    mirrors = [f"http://me:p%40ss@{server.host}/m"]
    with pytest.raises(UserError) as failed:
        download_file("http://up.example/a.tgz", output, mirrors=mirrors, waits=())
    server.serve(
        "/m/up.example/a.tgz",
        Served(BODY, etag='"1"', authorization=f"Basic {token}", cuts=[5000]),
    )
    with pytest.raises(UserError):
        download_file("http://up.example/a.tgz", output, mirrors=mirrors, waits=())
    said = str(failed.value) + "".join(capfd.readouterr())
    said += "".join(path.read_text("latin-1") for path in output.parent.glob("*.json"))
    assert f"http://{server.host}/m/up.example/a.tgz" in said
    assert not [secret for secret in ("me:", "p%40", "p@ss", token) if secret in said]
    download_file("http://up.example/a.tgz", output, mirrors=mirrors, waits=(0,))
    assert output.read_bytes() == BODY
    assert [answer.status for answer in server.answers] == [500, 200, 206]


@pytest.mark.parametrize(
    "url",
    ["http://me:se/secret@{}/m", "http://me:se secret@{}", "http://me:secret?@{}"],
)
def test_a_mirrors_password_of_other_signs_is_refused_unseen(
    server: LoopbackServer, output: Path, url: str
) -> None:
    with pytest.raises(UserError, match="%2F, %3F, %23 and %20 for") as failed:
        download_file(
            "http://up.example/a.tgz", output, mirrors=[url.format(server.host)]
        )
    assert "secret" not in str(failed.value)
    assert server.host in str(failed.value)
    assert not server.answers


def test_a_mirrors_token_is_sent_to_the_mirror_and_shown_to_nobody(
    server: LoopbackServer, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mirrors = [f"http://{server.host}/m?token=secret&path="]
    server.serve(
        "/m?token=secret&path=/up.example/a.tgz", Served(BODY, etag='"1"', cuts=[5000])
    )
    for waits in ((), (0,)):
        with suppress(UserError):
            download_file(
                "http://up.example/a.tgz", output, mirrors=mirrors, waits=waits
            )
        notes = "".join(
            path.read_text("latin-1") for path in output.parent.glob("*.json")
        )
        assert "secret" not in notes + "".join(capfd.readouterr())
    assert output.read_bytes() == BODY
    assert [answer.status for answer in server.answers] == [200, 206]


def test_a_redirection_does_not_take_a_password_along(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/other.tgz", Served(BODY))
    server.serve("/m/up.example/a.tgz", Served(b"", redirect=url))
    mirrors = [f"http://me:secret@{server.host}/m"]
    download_file("http://up.example/a.tgz", output, mirrors=mirrors, waits=())
    assert [bool(header) for header in server.authorizations] == [True, False]


def test_a_file_that_has_become_shorter_starts_over(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    interrupt(server, url, output)
    short = BODY[:100]
    server.serve("/a.tgz", Served(short))
    download_file(url, output, sha256=hashlib.sha256(short).hexdigest(), waits=WAITS)
    assert output.read_bytes() == short
    assert [status for _, status, _ in sent(server)] == [416, 200]


def test_an_endless_wrong_file_ends(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(OTHER, cuts=[100_000, 200_000] * 20))
    with pytest.raises(UserError, match="has sha256"):
        download_file(url, output, sha256=SHA256, waits=WAITS)
    assert len(server.answers) < 12
    assert not output.exists()


# Trust on first use


def test_the_first_download_is_recorded_and_enforced(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    download_file(url, output)
    record = output.parent / "a.tgz.sha256"
    assert record.read_text() == f"{SHA256}  a.tgz\n"
    output.unlink()
    download_file(url, output)
    assert output.read_bytes() == BODY
    output.unlink()
    server.serve("/a.tgz", Served(OTHER))
    with pytest.raises(UserError, match=f"expected {SHA256}.*delete .*a.tgz.sha256"):
        download_file(url, output, waits=WAITS)
    assert names(output) == ["a.tgz.sha256"]
    record.unlink()
    download_file(url, output)
    assert output.read_bytes() == OTHER


def test_a_known_checksum_needs_no_record(server: LoopbackServer, output: Path) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    output.parent.mkdir()
    (output.parent / "a.tgz.sha256").write_text("0" * 64 + "  a.tgz\n")
    download_file(url, output, md5=MD5)
    assert output.read_bytes() == BODY


def test_a_damaged_record_is_named(server: LoopbackServer, output: Path) -> None:
    output.parent.mkdir()
    (output.parent / "a.tgz.sha256").write_text("?\n")
    with pytest.raises(UserError, match=r"a\.tgz\.sha256:1: expected a SHA-256"):
        download_file(server.serve("/a.tgz", Served(BODY)), output)


def test_a_web_page_is_not_taken_for_the_file(
    server: LoopbackServer, output: Path
) -> None:
    page = Served(
        b"<html>please log in</html>", content_type="text/html; charset=utf-8"
    )
    with pytest.raises(UserError, match="answers with a web page"):
        download_file(server.serve("/a.tgz", page), output, waits=WAITS)
    assert names(output) == []


# Mirrors


def test_mirrors_come_first_in_their_order(
    server: LoopbackServer,
    tmp_path: Path,
    output: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = server.serve("/wmt14/a.tgz", Served(BODY))
    place = f"{server.host}/wmt14/a.tgz"
    base = mirror(server, Served(BODY), "wmt14/a.tgz")
    stale = tmp_path / "stale" / place
    stale.parent.mkdir(parents=True)
    stale.write_bytes(OTHER)
    mirrors = [str(tmp_path / "none"), f"{tmp_path}/stale/", base]
    download_file(url, output, mirrors=mirrors, sha256=SHA256, waits=WAITS)
    assert output.read_bytes() == BODY
    assert names(output) == ["a.tgz"]
    errors = capsys.readouterr().err
    assert f"{tmp_path}/none/{place}: No such file or directory\n" in errors
    assert f"{stale}: has sha256 " in errors
    assert [answer.path for answer in server.answers] == [f"/mirror/{place}"]


def test_a_folder_mirror_needs_no_network(tmp_path: Path, output: Path) -> None:
    (tmp_path / "h" / "p").mkdir(parents=True)
    (tmp_path / "h" / "p" / "a.tgz").write_bytes(BODY)
    download_file("https://h/p/a.tgz", output, mirrors=[str(tmp_path)], size=len(BODY))
    assert output.read_bytes() == BODY
    assert names(output) == ["a.tgz", "a.tgz.sha256"]


def test_the_workflow_finds_a_mirror_in_the_home_folder(
    root: Path, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mirror/up.invalid").mkdir(parents=True)
    (tmp_path / "mirror/up.invalid/a.tgz").write_bytes(BODY)
    rule = SimpleNamespace(
        input=[],
        output=[str(output)],
        log=[str(tmp_path / "a.log")],
        config={"mirrors": ["~/mirror"]},
        params=SimpleNamespace(
            source={"url": "http://up.invalid/a.tgz", "sha256": SHA256}
        ),
    )
    runpy.run_path(str(root / "workflow/scripts/download_file.py"), {"snakemake": rule})
    assert output.read_bytes() == BODY


def test_bytes_of_one_source_are_not_continued_from_another(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY))
    base = mirror(server, Served(OTHER, cuts=[70_000] + [0] * 3))
    download_file(url, output, mirrors=[base], sha256=SHA256, waits=WAITS)
    assert output.read_bytes() == BODY
    assert server.answers[-1] == Answer("/a.tgz", None, 200, 200_000)


def test_a_mirror_of_another_kind_is_refused(output: Path) -> None:
    with pytest.raises(UserError, match="expected a folder or an http"):
        download_file("http://h/a.tgz", output, mirrors=["s3://bucket"])


# Disk


def test_free_space_is_checked_first(
    server: LoopbackServer, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(
        UserError, match="200000 more bytes to download, but only 1000 are free"
    ):
        download_file(
            server.serve("/a.tgz", Served(BODY)), output, sha256=SHA256, waits=WAITS
        )
    assert not output.exists()


def test_a_disk_that_fills_up_is_one_clear_line(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY, has_length=False))
    program = (
        "import pathlib, resource, sys; from convs2s.download.download import download_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "from convs2s.errors import UserError\n"
        "try: download_file(sys.argv[1], pathlib.Path(sys.argv[2]), waits=())\n"
        "except UserError as error: sys.exit(str(error))"
    )
    command = [sys.executable, "-c", program, url, str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        f"{output}: cannot be written: File too large" in done.stderr.splitlines()[-1]
    )
    assert not output.exists()


def test_the_part_says_where_it_comes_from(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY, etag='"1"'))
    interrupt(server, url, output)
    record = json.loads((output.parent / "a.tgz.part.json").read_text())
    assert record == {
        "source": url,
        "etag": '"1"',
        "last_modified": None,
        "size": 200_000,
    }


# Places


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
        download_file(url, output)
    assert not output.parent.exists()


def test_demo_urls_are_not_downloaded(output: Path) -> None:
    with pytest.raises(UserError, match="only http and https"):
        download_file("demo://en_fr/train.en", output)


# The real mirror


def test_multi30k_from_the_mirror_has_upstreams_checksums(
    shared: Path, tmp_path: Path
) -> None:
    rows = (shared / "spec/archives.tsv").read_text("utf-8").splitlines()
    records = [row.split("\t") for row in rows if "multi30k" in row]
    assert len(records) == 12
    for url, size, sha256, *_ in records:
        output = local_path(url, tmp_path)
        download_file(
            url, output, mirrors=[str(shared / "mirror")], sha256=sha256, size=int(size)
        )
        assert hashlib.sha256(output.read_bytes()).hexdigest() == sha256
