"""Writers whose disk fills up, that are killed or not alone, or have nowhere to write.

Files appear under their names whole or not at all.
"""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from convs2s.data.corpus import RawText, extract_corpus, join_training_text
from convs2s.data.store import write_store
from convs2s.decoding.long_files import growing_output
from convs2s.download.download import download_file
from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path, scratch_folder
from convs2s.files.compressed import decompressed_file
from convs2s.files.tensors import save_tensors
from convs2s.files.text import write_json, write_lines
from convs2s.mirror.write import write_mirror
from convs2s.training.state_folder import ProgressFile
from tests.faults.limits import files_of_at_most
from tests.faults.systems import READS_PROC
from tests.support.archives import FilesBelow
from tests.support.refusals import refusal, refuses, says

ROOM = 20_000
"""Bytes that a file may have: enough for headers, too few for what is written here."""

DRAW = random.Random(1)
LINES = [" ".join(f"W{DRAW.randbytes(6).hex()}" for _ in range(9)) for _ in range(1000)]

INPUTS = Path("inputs")
SIDES = (INPUTS / "a.en", INPUTS / "a.fr")

WRITER = """
import sys
from convs2s.files.atomic import atomic_path

with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("writes", flush=True)
    sys.stdin.read()
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def _inputs(in_folder: None) -> None:
    for name in ("a.en", "a.fr", "host/a.tgz"):
        write_lines(INPUTS / name, LINES)
    report = {"read": 1, "kept": 1, "dropped": {}, "settings": "all"}
    write_json(INPUTS / "a.json", report)


def growing(output: Path) -> None:
    with growing_output(output / "a.txt", {}) as stream:
        stream.append("\n".join(LINES), len(LINES))


def joined(output: Path) -> None:
    join_training_text(
        parts=[SIDES] * 2,
        reports=[INPUTS / "a.json"] * 2,
        sides=(output / "a.en", output / "a.fr"),
        report=output / "a.json",
    )


def extracted(output: Path) -> None:
    source, target = map(str, SIDES)
    text = RawText([(source, target)], FilesBelow(INPUTS))
    extract_corpus(text, (output / "a.en", output / "a.fr"))


def downloaded(output: Path) -> None:
    download_file("http://host/a.tgz", output / "a.tgz", mirrors=[str(INPUTS)])


WRITERS: dict[str, Callable[[Path], object]] = {
    "text": lambda out: write_lines(out / "a.txt", LINES),
    "Zstandard": lambda out: write_lines(out / "a.zst", LINES * 9),
    "JSON": lambda out: write_json(out / "a.json", LINES),
    "token store": lambda out: write_store(out / "a.arrow", [([5] * 99, [1])] * 500),
    "tensors": lambda out: save_tensors(out / "a", {"a": torch.ones(9999)}, {}),
    "growing output": growing,
    "download": downloaded,
    "extracted corpus": extracted,
    "joined text": joined,
    "mirror": write_mirror,
}


@contextmanager
def killed_before_the_renaming(_: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", Mock(side_effect=KeyboardInterrupt))
        yield


@pytest.mark.parametrize("fault", [files_of_at_most, killed_before_the_renaming])
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.usefixtures("_inputs")
def test_a_writer_that_fails_leaves_what_stood_there(
    tmp_path: Path, name: str, fault: Any
) -> None:
    output = tmp_path / "output"
    output.mkdir()
    (output / "a.zst").write_text("before")
    with fault(ROOM), pytest.raises((UserError, KeyboardInterrupt)) as raised:
        WRITERS[name](output)
    if fault is files_of_at_most:
        says(str(raised.value), "cannot be written", str(output))
    left = [path for path in output.rglob("*") if path.name.startswith(".partial")]
    assert left == []
    assert (output / "a.zst").read_text() == "before"
    stays = {"a.zst"}
    for end in (".txt.part", ".tgz.part", ".tgz.part-mirror"):
        stays |= {f"a{end}", f"a{end}.json"}
    assert {path.name for path in output.glob("a*")} <= stays | {"a.tgz.sha256"}


def test_an_unfinished_output_with_a_damaged_state_starts_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for content in ("", "[]", '{"identity": 1}', "[" * 99_999):
        (tmp_path / "a.txt.part").write_text("one\n")
        (tmp_path / "a.txt.part.json").write_text(content)
        growing(tmp_path)
        assert (tmp_path / "a.txt").read_text() == "\n".join(LINES)
        says(capsys.readouterr().err, "its state cannot be read")


@contextmanager
def other_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that is writing the same file until its input ends."""
    command = [sys.executable, "-c", WRITER, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writes\n"
        yield process


def test_two_writers_share_nothing_and_leave_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with other_writer(path) as other:
        write_lines(path, ["whole"])
        assert path.read_text() == "whole\n"
        other.communicate("")
    assert path.read_text() == "half"  # the later one's
    assert names(tmp_path) == ["out"]


def test_what_the_killed_left_goes_with_the_next_writer(tmp_path: Path) -> None:
    with other_writer(tmp_path / "killed") as killed:
        killed.send_signal(signal.SIGKILL)
    (left,) = names(tmp_path)
    (tmp_path / ".partial.def").mkdir()
    (tmp_path / ".partial.def/.lock").touch()
    (tmp_path / ".partial.def/forward").touch()
    (tmp_path / ".partial.link").symlink_to(tmp_path)
    with other_writer(tmp_path / "alive") as alive:
        assert left not in names(tmp_path)
        (other,) = {*names(tmp_path)} - {".partial.link"}
        with scratch_folder(tmp_path) as folder:
            # What lives is left alone.
            assert {*names(tmp_path)} == {other, folder.name, ".partial.link"}
        alive.communicate("")
    assert names(tmp_path) == [".partial.link", "alive"]


def test_a_removal_that_stops_is_finished_by_the_next_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left has its lock, by which it is found, in whichever order a disk lists files."""
    unlink = os.unlink
    for stays in ("a", "b", "z"):

        def fail(path: Any, stays: str = stays, **options: Any) -> None:
            if Path(path).name == stays:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
            unlink(path, **options)

        with monkeypatch.context() as patch, scratch_folder(tmp_path) as folder:
            (folder / "folder").mkdir()
            for name in ("a", "folder/b", "z"):
                (folder / name).touch()
            patch.setattr(os, "unlink", fail)
        assert names(tmp_path) == [folder.name]
        write_lines(tmp_path / "out", [])
        assert names(tmp_path) == ["out"]
        (tmp_path / "out").unlink()


def test_a_file_in_the_folders_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = refusal(write_lines, tmp_path / "file/out", [])
    says(message, "file/out: cannot be written: File exists")
    with pytest.raises(FileNotFoundError), scratch_folder(tmp_path):
        (tmp_path / "absent").read_text()


@pytest.mark.parametrize("name", ["text", "growing output"])
def test_a_pipe_is_written_to_and_never_replaced(tmp_path: Path, name: str) -> None:
    pipe = tmp_path / "a.txt"
    found: list[str] = []
    os.mkfifo(pipe)
    reader = threading.Thread(
        target=lambda: found.extend(pipe.read_text().splitlines()), daemon=True
    )
    reader.start()
    WRITERS[name](tmp_path)
    reader.join(10)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["a.txt"]
    assert found == LINES


def test_an_output_that_another_process_finishes_just_now_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tmp_path / "a.txt.part"
    part.write_text("whole\n")
    monkeypatch.setattr("fcntl.flock", lambda *_: part.replace(tmp_path / "a.txt"))
    refuses("another process has written it just now", growing, tmp_path)
    assert (tmp_path / "a.txt").read_text() == "whole\n"


@pytest.mark.parametrize("call", ["replace", "write_text"])
def test_progress_that_cannot_be_written_ends_nothing_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(path: Path, *_: object) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, call, fail)
    ProgressFile(tmp_path).start("process 1 on here", "0123")
    assert list(tmp_path.iterdir()) == []


def write_half(path: Path, error: BaseException, read: Path) -> None:
    with atomic_path(path) as temporary, decompressed_file(read) as stream:
        temporary.write_text("half")
        stream.read(1)
        raise error


@READS_PROC
def test_a_block_that_fails_changes_nothing_and_a_disk_is_named(tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.touch()
    output = tmp_path / "out"
    output.write_text("before")
    with pytest.raises(KeyboardInterrupt):
        write_half(output, KeyboardInterrupt(), part)
    failing = OSError(errno.EIO, "Input/output error")  # of what is written meanwhile
    refuses(
        "out: cannot be written: Input/output error", write_half, output, failing, part
    )
    part.unlink()
    part.symlink_to("/proc/self/mem")  # can be opened; its first byte cannot be read
    refuses(
        "part: cannot be read: Input/output error", write_half, output, failing, part
    )
    assert output.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "part"}
