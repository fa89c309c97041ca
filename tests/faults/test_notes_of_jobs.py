"""What a job leaves beside its files where it fails, is killed, or has a twin at work."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

import pytest

from convs2s.errors import UserError
from convs2s.files.checksums import check_noted, note_checksums, note_path
from convs2s.pipeline.job import job
from convs2s.pipeline.living import RUN
from convs2s.pipeline.tries import failed_try, note_beside, noted_try
from tests.faults.campaign.samples import stand_in
from tests.faults.limits import files_of_at_most
from tests.support.processes import job_command, wait_for
from tests.support.refusals import refusal, says


@contextmanager
def at_work(log: Path) -> Iterator[subprocess.Popen[str]]:
    """A job in a process of its own, which works until its input ends."""
    command = job_command(log, "sys.stdin.read()")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
            assert process.communicate()[1] == ""
            assert process.returncode == 0
        finally:
            process.kill()


def test_a_job_says_that_it_waits_for_the_one_at_work(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    with at_work(log) as orphan:
        wait_for(lambda: log.exists() and "at work" in log.read_text())
        first = log.read_text().splitlines()[0]
        assert first.endswith(f", process {orphan.pid} on {os.uname().nodename}")
        log.unlink()  # as Snakemake does before a job
        with at_work(log) as rerun:
            assert rerun.stderr is not None
            stderr = rerun.stderr
            wait_for(lambda: log.exists() or bool(select([stderr], [], [], 0)[0]))
            assert not log.exists()
            said = f"{log}: {first} still does this work: waiting until it ends\n"
            assert stderr.readline() == said
            orphan.communicate("")
            wait_for(lambda: log.exists() and "at work" in log.read_text())
    assert f"process {rerun.pid} " in log.read_text()
    assert "\ndone in" in log.read_text()


def test_a_failed_job_leaves_no_note_of_what_stood_there_before(tmp_path: Path) -> None:
    """The note would accuse what the next job, or a person, writes in its place."""
    output = tmp_path / "scores.json"
    rule = stand_in(str(tmp_path / "a.log"), [], [output])
    with job(rule):
        output.write_text("1\n")
    assert note_path(output).is_file()
    with pytest.raises(SystemExit), job(rule):
        raise UserError(str(output.write_text("2\n")))
    assert not note_path(output).exists()
    assert failed_try(str(output))
    check_noted([output])


def test_a_note_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut would leave an empty one otherwise, which accuses a sound file.

    A disk without room is one line, and leaves nothing that is in the way later.
    """
    output = tmp_path / "scores.json"
    output.write_text("1\n")
    with files_of_at_most(60):
        message = refusal(note_checksums, [output], tmp_path)
    says(message, ".scores.json.sha256: cannot be written", "make room")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    note_checksums([output], tmp_path)
    assert synced == [note_path(output).stat().st_ino]
    assert {*tmp_path.iterdir()} == {note_path(output), output}


def test_a_log_without_room_is_no_reason_to_fail(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the job writes says that the disk is full."""
    rule = stand_in(f"{tmp_path}/a.log", [], [])
    with files_of_at_most(30), pytest.raises(SystemExit), job(rule):
        raise UserError("no room")
    assert capfd.readouterr().err == "error: no room\n"


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv(RUN, raising=False)
    return [str(tmp_path / "made/train.txt")]


def noted(output: list[str]) -> str:
    """The name of the try that the note has."""
    name: str = json.loads(note_beside(output[0]).read_text("utf-8"))["try"]
    return name


def fail(output: list[str]) -> str:
    """What the note of a failed try says: no other one says the same."""
    with pytest.raises(KeyError), noted_try(output):
        raise KeyError
    return noted(output)


def succeed(output: list[str]) -> str:
    """What is said after a try that succeeds; that it runs is noted from its start."""
    before = failed_try(output[0])
    with noted_try(output):
        assert noted(output) not in ("", before)
    return failed_try(output[0])


def test_a_try_that_fails_leaves_a_note_and_one_that_succeeds_what_there_was(
    output: list[str],
) -> None:
    assert succeed(output) == ""
    assert not note_beside(output[0]).exists()
    first, second = fail(output), fail(output)
    assert first
    assert second not in ("", first)
    assert succeed(output) == succeed(output) == second
    for content in ("", "[1]", "{"):
        note_beside(output[0]).write_text(content)
        assert failed_try(output[0]) == ""
    with noted_try([]):  # of what makes no file
        pass


def test_a_second_try_of_a_run_leaves_what_the_plan_saw(
    output: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first one Snakemake knows nothing: it has planned before."""
    monkeypatch.setenv(RUN, "first")
    fail(output)
    assert succeed(output) == ""
    planned = fail(output)
    monkeypatch.setenv(RUN, "second")
    for _ in range(2):
        fail(output)
        assert failed_try(output[0]) == planned
    assert succeed(output) == planned
