"""Two writers of one file, writers that were killed, and places where nothing can be written."""

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from convs2s.decoding.long_files import growing_output
from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path, scratch_folder
from convs2s.files.tensors import save_tensors
from convs2s.files.text import write_lines

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


@contextmanager
def other_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that is writing the same file until its input ends."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writes\n"
        yield process


def test_two_writers_share_nothing_and_leave_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with other_writer(path) as other:
        write_lines(path, ["whole"])
        assert path.read_text() == "whole\n"
        assert other.communicate("")[0] == ""
    assert other.returncode == 0
    assert path.read_text() == "half"  # the later one's
    assert names(tmp_path) == ["out.txt"]


def test_what_a_killed_writer_leaves_goes_with_the_next_one(tmp_path: Path) -> None:
    with other_writer(tmp_path / "out.txt") as killed:
        killed.send_signal(signal.SIGKILL)
    (left,) = names(tmp_path)
    assert left.startswith(".partial.")
    with other_writer(tmp_path / "other.txt") as alive:
        assert left not in names(tmp_path)
        write_lines(tmp_path / "out.txt", ["whole"])
        assert len(names(tmp_path)) == 2  # what lives is left alone
        alive.communicate("")
    assert names(tmp_path) == ["other.txt", "out.txt"]


def test_folders_that_killed_jobs_left_go_as_well(tmp_path: Path) -> None:
    (tmp_path / ".partial.def").mkdir()
    (tmp_path / ".partial.def/.lock").touch()
    (tmp_path / ".partial.def/forward").write_text("0-0\n")
    (tmp_path / ".partial.link").symlink_to(tmp_path)
    with scratch_folder(tmp_path) as folder:
        assert names(tmp_path) == sorted([folder.name, ".partial.link"])
    assert names(tmp_path) == [".partial.link"]


def test_a_place_where_nothing_can_be_written_is_said_in_one_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="out: cannot be written: File exists"):
        write_lines(tmp_path / "file/out", [])
    assert names(tmp_path) == ["file"]


def write_growing(path: Path) -> None:
    with growing_output(path, {}) as output:
        output.append("one\n", 1)
        output.append("two\n", 1)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_lines(path, ["one", "two"]),
        write_growing,
        lambda path: save_tensors(path, {"a": torch.ones(2)}, {}),
    ],
    ids=["lines", "growing", "tensors"],
)
def test_a_pipe_is_written_to_and_never_replaced(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    pipe, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(
        target=lambda: found.append(pipe.read_bytes()), daemon=True
    )
    reader.start()
    write(pipe)
    reader.join(10)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]
    write(tmp_path / "file")
    assert found == [(tmp_path / "file").read_bytes()]


def test_an_output_that_another_process_finishes_just_now_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    (tmp_path / "out.part").write_text("whole\n")

    def finish(*_: object) -> None:
        (tmp_path / "out.part").replace(path)

    monkeypatch.setattr("fcntl.lockf", finish)
    with (
        pytest.raises(UserError, match="another process has written it just now"),
        growing_output(path, {}),
    ):
        pass
    assert path.read_text() == "whole\n"


def test_a_failed_block_leaves_the_error_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "out"):
        (tmp_path / "absent").read_text()


@pytest.mark.parametrize("state", ["", "{", "[]", '{"identity": 1}', "[" * 99_999])
def test_an_unfinished_output_with_a_damaged_state_starts_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    (tmp_path / "out.part").write_text("one\n")
    (tmp_path / "out.part.json").write_text(state)
    with growing_output(tmp_path / "out", {"model": "a"}) as output:
        assert output.done == 0
        output.append("whole\n", 1)
    assert (tmp_path / "out").read_text() == "whole\n"
    assert "its state cannot be read" in capsys.readouterr().err
