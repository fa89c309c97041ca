"""Two writers of one download: one brings it, the other takes that; the file on the disk counts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.file_reference import local_path
from convs2s.config.options import Options
from convs2s.download.download import download_file
from convs2s.download.partial_file import Expected, Origin, PartialFile, WrongFileError
from convs2s.files.checksums import recorded_sha256, sha256
from convs2s.paper.ledger import published_file
from tests.support.downloads import BODY, OTHER, SHA256, mirror, names
from tests.support.loopback import LoopbackServer, Served
from tests.support.processes import wait_for


def at_once(*functions: Callable[[], object]) -> None:
    """Call functions in a thread each; locks of the kernel's are those of open files."""
    with ThreadPoolExecutor(len(functions)) as pool:
        for call in [pool.submit(function) for function in functions]:
            call.result(60)


@pytest.mark.parametrize("known", [SHA256, None])
@pytest.mark.parametrize("has_mirror", [True, False])
def test_of_several_processes_one_brings_the_file(
    server: LoopbackServer, output: Path, known: str | None, has_mirror: bool
) -> None:
    url = server.serve("/a.tgz", Served(BODY, pause=0.03))
    mirrors = [mirror(server, Served(BODY, pause=0.03))] if has_mirror else []
    at_once(
        *[lambda: download_file(url, output, sha256=known)] * 2,
        lambda: download_file(url, output, sha256=known, mirrors=mirrors),
    )
    assert output.read_bytes() == BODY
    assert len(server.answers) == 1
    assert names(output) == ["a.tgz", *([] if known else ["a.tgz.sha256"])]


def test_who_waited_brings_what_the_other_could_not(
    server: LoopbackServer, output: Path
) -> None:
    url = server.serve("/a.tgz", Served(BODY, cuts=[70_000], pause=0.03))

    def give_up() -> None:
        with pytest.raises(Exception, match="cut after 70000"):
            download_file(url, output, sha256=SHA256, waits=())

    def go_on() -> None:
        wait_for(lambda: bool(list(output.parent.glob("*.part"))))
        download_file(url, output, sha256=SHA256)

    at_once(give_up, go_on)
    assert output.read_bytes() == BODY
    assert [answer.start for answer in server.answers] == [None, 70_000]


def test_more_than_the_server_said_is_fetched_again(
    server: LoopbackServer, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without locks another process may write to the same part."""
    url, sound, calls = server.serve("/a.tgz", Served(BODY)), PartialFile.append, [0]

    def doubled(part: PartialFile, *arguments: Any) -> None:
        sound(part, *arguments)
        calls[0] += 1
        if calls[0] == 1:
            with part._path.open("ab") as file:
                file.write(b"of another process")

    monkeypatch.setattr(PartialFile, "append", doubled)
    download_file(url, output, waits=(0.0,))
    assert output.read_bytes() == BODY
    assert recorded_sha256(output) == SHA256


def test_what_lies_on_the_disk_is_checked(tmp_path: Path) -> None:
    part = PartialFile(tmp_path / "a.tgz", Expected(sha256=SHA256))
    part.begin(Origin("http://host/a.tgz"))
    pieces = [b"", BODY]

    def read() -> bytes:  # meanwhile somebody without the lock writes there too
        with (tmp_path / "a.tgz.part").open("ab") as stream:
            stream.write(b"x" if len(pieces) == 1 else b"")
        return pieces.pop()

    part.append(read, len(BODY))
    with pytest.raises(WrongFileError, match="has sha256"):
        part.check()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def options(server: LoopbackServer) -> Options:
    """Those of a run that takes a published ledger."""
    return Options(published=server.serve("/runs.jsonl", Served(BODY, pause=0.03)))


def test_two_plans_fetch_a_published_ledger_once(
    server: LoopbackServer, options: Options, tmp_path: Path
) -> None:
    at_once(*[lambda: published_file(options, tmp_path)] * 2)
    place = published_file(options, tmp_path)
    assert place is not None
    assert place.read_bytes() == BODY
    assert len(server.answers) == 1


def test_a_published_ledger_that_is_not_as_recorded_is_fetched_again(
    options: Options, tmp_path: Path
) -> None:
    place = published_file(options, tmp_path)
    assert place == local_path(str(options.published), tmp_path)
    assert recorded_sha256(place) == sha256(place)
    place.write_bytes(BODY + BODY)
    assert published_file(options, tmp_path) == place
    assert place.read_bytes() == BODY


def test_a_ledger_that_somebody_laid_there_is_taken_as_it_is(
    options: Options, tmp_path: Path
) -> None:
    place = local_path(str(options.published), tmp_path)
    place.parent.mkdir(parents=True)
    place.write_bytes(OTHER)
    assert published_file(options, tmp_path) == place
    assert place.read_bytes() == OTHER
