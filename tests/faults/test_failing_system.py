"""Failures of the system on any file: one line with the file and the remedy, and no traceback."""

import errno
import fcntl
import io
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Never

import pytest

from convs2s.data.corpus import cut_text
from convs2s.errors import failures_in_one_line
from convs2s.files.atomic import scratch_folder, whole_files
from convs2s.files.checksums import note_checksums
from convs2s.files.compressed import open_input
from convs2s.files.locks import try_lock, wait_for_lock
from convs2s.files.text import write_lines
from convs2s.pipeline.job import job
from tests.conftest import Terminal
from tests.faults.campaign.samples import stand_in
from tests.faults.limits import open_files_of_at_most
from tests.faults.systems import failing
from tests.support.refusals import refusal, refuses, says

REMEDIES = {
    errno.EMFILE: ("Too many open files", "ulimit -n"),
    errno.ENFILE: ("Too many open files in system", "end other programs"),
    errno.ESTALE: ("Stale file handle", "mount the folder again"),
    errno.ENOLCK: ("No locks available", "lockd"),
    errno.EIO: ("Input/output error", "the disk fails"),
    errno.ENOSPC: ("No space left on device", "make room"),
    errno.EDQUOT: ("Disk quota exceeded", "make room"),
    errno.EROFS: ("Read-only file system", "for writing"),
    errno.ENOTCONN: ("Transport endpoint is not connected", "mount the folder again"),
}


@pytest.mark.parametrize(
    "call", ["open", "write", "close", "fsync", "lock", "rename", "replace", "mkdir"]
)
def test_an_output_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    output = tmp_path / "out.txt"
    output.write_text("before\n")
    fail = failing(errno.ENOSPC)
    if call == "open":
        monkeypatch.setattr("convs2s.files.text.open_text", fail)
    elif call == "lock":  # of the temporary folder, which has been made by then
        monkeypatch.setattr(Path, "open", fail)
    elif call in ("write", "close"):
        stream = io.StringIO()
        monkeypatch.setattr(stream, call, fail)
        monkeypatch.setattr("convs2s.files.text.open_text", lambda _: stream)
    else:
        monkeypatch.setattr(os, call, fail)
    message = refusal(write_lines, output, ["a"])
    said = f"{output}: cannot be written: "
    says(message, said, *REMEDIES[errno.ENOSPC], "is kept; ")
    monkeypatch.undo()
    assert output.read_text() == "before\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def in_one_line(fail: Callable[..., object], argument: object) -> str:
    """Return how a command ends in which something fails."""
    with pytest.raises(SystemExit) as ended, failures_in_one_line():
        fail(argument)
    return str(ended.value)


@pytest.mark.parametrize("number", REMEDIES)
def test_what_is_read_noted_or_locked_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    words = REMEDIES[number]
    monkeypatch.setattr(os, "fsync", failing(number))
    says(refusal(note_checksums, [path], None), ".a.json.sha256: cannot be", *words)
    monkeypatch.setattr("convs2s.files.compressed._InputFile", failing(number))
    says(refusal(open_input, path), f"{path}: cannot be read: ", *words)
    monkeypatch.setattr(fcntl, "flock", failing(number))
    with path.open() as file:
        for take_lock in (try_lock, wait_for_lock):
            said = in_one_line(take_lock, file)
            says(said, f"error: {path}: cannot be used: ", *words)


def test_the_folder_where_a_command_was_typed_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of a relative output's folder is `.`, as is that of its temporary folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
    with scratch_folder(Path()) as scratch:
        for path in (Path("a"), scratch / "a", Path(scratch.name, "a")):
            refuses("a: cannot be written: No space left", write_lines, path, [])
    said = in_one_line(stale, ".")
    says(said, f"error: {tmp_path}: cannot be used: Stale file handle; ")


def stale(path: object, *_: object, **__: object) -> Never:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))


def test_a_folder_that_cannot_be_listed_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files would be missing from an archive, without a word."""
    monkeypatch.setattr(os, "scandir", stale)
    said = in_one_line(list, whole_files(tmp_path))
    says(said, f"error: {tmp_path}: cannot be used: ", *REMEDIES[errno.ESTALE])


@pytest.mark.parametrize("named", ["logs", "data/a.en", "logs/a.log"])
def test_a_job_ends_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    named: str,
) -> None:
    log = tmp_path / "logs/a.log"
    line = f"{named}: cannot be used: Stale file handle; "
    fail: Callable[..., None] = partial(stale, "data/a.en")
    if named == "logs":
        monkeypatch.setattr(Path, "mkdir", stale)
    if named == "logs/a.log":  # of what is printed, the system says no name
        line = f"{log}, or another file that is open: failed: Stale file handle; "
        fail = failing(errno.ESTALE)
    with pytest.raises(SystemExit) as ended, job(stand_in(str(log), [], [])):
        fail()
    said = f"{ended.value}\n{capfd.readouterr().err}"
    says(said, "error: ", line, "mount the folder again")
    assert "Traceback" not in said
    if named != "logs":
        assert log.read_text().count("error: ") == 1
        says(log.read_text(), f"error: {line}")


def test_a_command_may_open_any_number_of_files(
    results: Path, tmp_path: Path, run: Terminal
) -> None:
    """Whichever open fails, the command ends in one line, and leaves nothing."""
    run("export-results", results, tmp_path / "first")  # imports all that it needs
    failed = 0
    for number in range(1, 30, 4):
        output = tmp_path / f"out{number}"
        try:
            with open_files_of_at_most(number):
                run("export-results", results, output)
        except SystemExit as ended:
            failed += 1
            says(str(ended), "convs2s: error: ", "Too many open files", "ulimit -n")
            assert not list(tmp_path.glob(f"*{output.name}"))
    assert 0 < failed < 8


def test_a_text_is_cut_with_fewer_open_files_than_its_parts_have(
    tmp_path: Path,
) -> None:
    text = tmp_path / "text"
    write_lines(text, map(str, range(50)))
    parts = [(tmp_path / f"{part}.en", tmp_path / f"{part}.fr") for part in range(50)]
    with open_files_of_at_most(128):
        assert cut_text(source=text, target=text, outputs=parts) == 50
