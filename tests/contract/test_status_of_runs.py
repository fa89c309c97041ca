"""``convs2s status`` tells from files alone what became of real trainings and jobs."""

import fcntl
import json
import multiprocessing
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from convs2s.pipeline.status import SHOWN_LINES, Status, status
from convs2s.pipeline.status_view import view
from convs2s.training import state_folder
from convs2s.training.run import train
from tests.conftest import Terminal
from tests.contract.score_files import read
from tests.support import tiny
from tests.support.processes import job_command, wait_for
from tests.support.refusals import rows, says

ENDLESS: dict[str, Any] = {"maximum_epochs": 9999, "learning_rate": 0.001}
PATIENCE = 300


def is_under_way(results: Path, name: str) -> bool:
    """It tells the seconds that are left when it has made some updates."""
    progress = results / f"tiny/models/{name}/seed1/state/progress.json"
    return progress.exists() and read(progress)["seconds"] is not None


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The status of a folder in which everything has happened and two trainings still run."""
    results = tiny.prepare(tmp_path_factory.mktemp("results") / "tiny").parent
    live: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_folder, "SECONDS_BETWEEN_NOTES", 0.0)
        try:
            for name in ("running", "killed", "held"):
                live.append(start(results, name, **ENDLESS))
                wait_for(partial(is_under_way, results, name))
                # It lives on, and leaves others the machine.
                os.kill(live[-1].pid, signal.SIGSTOP)
            live[1].kill()
            live[1].join(PATIENCE)
            for one in (
                start(results, "finished", maximum_epochs=2),
                start(results, "limit", 1 / 60, **ENDLESS),
                start(results, "diverged", learning_rate=1e30, clip=1e30),
                start(results, "held", maximum_epochs=1),  # is refused
            ):
                one.join(PATIENCE)
                assert one.exitcode is not None
            yield {one.name.split("/")[1]: one for one in status(results).trainings}
        finally:
            for process in live:
                process.kill()
                process.join(PATIENCE)


def start(
    results: Path, model: str, limit: float | None = None, **training: Any
) -> Any:
    """Start a training as the workflow has it, in a process of its own."""
    output = results / f"tiny/models/{model}/seed1/model.safetensors"
    given = tiny.settings(**training)
    one = tiny.job(results / "tiny", output, given, time_limit=limit)
    process = multiprocessing.get_context("fork").Process(target=train, args=(one,))
    process.start()
    return process


TOLD = """
running => running =>
held => locked => was refused
killed => crashed => killed, or its machine went down
diverged => crashed => training diverged in epoch 1 at update
limit => stopped => the time limit of 0.0166667 minutes is near; saved in
finished => finished => the recipe's maximum of 2 epochs is reached
"""


def test_each_training_is_told_apart(found: dict[str, Any]) -> None:
    for name, condition, why in rows(TOLD):
        one = found[name]
        assert one.condition == condition
        assert why in (one.why or "")
        assert bool(one.log) == (condition == "crashed")
        assert len(one.log) <= SHOWN_LINES
    assert found["running"].owner.endswith(f" on {os.uname().nodename}")
    assert (found["running"].epochs, found["finished"].epoch) == (9999, 2)
    assert found["held"].why.startswith(f"{found['held'].owner} holds it; process ")
    assert found["diverged"].log[-1] == f"error: {found['diverged'].why}"


def test_the_view_names_everything_that_there_is_room_for(
    found: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    every = tuple(found.values())
    Console(width=200).print(view(Status(every, ()), rows=100, width=200))
    counts = "trainings: 1 running, 1 locked, 2 crashed, 1 stopped, 1 finished\n"
    said = capsys.readouterr().out
    says(said, counts, "\ntiny/diverged/seed1 crashed:\n", found["running"].owner)
    waiting = replace(every[0], condition="not started")  # two words in one line
    many = (waiting, *every) * 50
    Console(width=80).print(view(Status(many, ()), rows=20, width=80))
    lines = capsys.readouterr().out.splitlines()
    assert "and 338 more" in lines
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80


def test_a_lock_is_believed_whether_it_can_be_seen_or_not(tmp_path: Path) -> None:
    state = tmp_path / "run/state"
    state.mkdir(parents=True)
    owner = "process 7 on elsewhere"
    (state / "lock").write_text(f"{owner}\n")

    def condition() -> str:
        return status(tmp_path).trainings[0].condition

    with (state / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert condition() == "locked"
    assert condition() == "crashed"
    # On a machine whose lock cannot be seen here.
    said = {"owner": owner, "phase": "training", "written": time.time()}
    for changes, expected in (
        ({}, "running"),
        ({"written": time.time() - 3600}, "crashed"),
        ({"written": None}, "crashed"),
        ({"epoch": "two"}, "crashed"),
    ):
        (state / "progress.json").write_text(json.dumps(said | changes))
        assert condition() == expected


ENDS = """
pass => 0 => finished =>
raise UserError('a.en:3: bad') => 1 => crashed => error: a.en:3: bad
1 / 0 => 1 => crashed => ZeroDivisionError: division by zero
raise KeyboardInterrupt => 130 => crashed => error: interrupted: the same command
os.kill(os.getpid(), 9) => -9 => crashed => at work
"""


@pytest.mark.parametrize(("work", "code", "condition", "last"), rows(ENDS))
def test_a_jobs_end_is_in_its_log(
    tmp_path: Path, work: str, code: str, condition: str, last: str
) -> None:
    name = "tiny/small/seed1/test.greedy.decode"
    (tmp_path / "tiny").mkdir()
    command = job_command(tmp_path / f"logs/{name}.log", work)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    (one,) = status(tmp_path).jobs
    assert (one.name, one.condition) == (name, condition)
    assert "".join(one.log[-1:]).startswith(last)
    # Nothing else is printed, and what comes after the job is.
    assert done.stdout == ("over\n" if condition == "finished" else "")
    assert done.returncode == int(code)
    if "UserError" in work:
        assert done.stderr == f"{last}\n"


def test_a_running_job_holds_its_log(tmp_path: Path) -> None:
    log = tmp_path / "logs/tiny/extract_corpus/train.log"  # of no training
    with subprocess.Popen(job_command(log, "time.sleep(600)")) as process:
        try:
            wait_for(lambda: log.exists() and "at work" in log.read_text())
            found = status(tmp_path)
        finally:
            process.kill()
    assert found.trainings == ()
    (one,) = found.jobs
    assert one.condition == "running"
    assert one.owner == f"process {process.pid} on {os.uname().nodename}"


FAILED = r"""
convs2s: error: no such file\n => crashed => no such file
Traceback (most recent):\nModuleNotFoundError: torch\n => crashed => ModuleNotFoundError: torch
convs2s: SIGTERM was received: run it again\n => stopped => stopped, rerun to resume
a warning of torch\n => not started =>
"""


def test_a_training_that_failed_before_its_states(tmp_path: Path) -> None:
    log = tmp_path / "logs/tiny/small/seed1/train.log"
    log.parent.mkdir(parents=True)
    (tmp_path / "tiny").mkdir()
    for text, condition, why in rows(FAILED):
        log.write_text(text)
        (one,) = status(tmp_path).trainings
        assert (one.name, one.condition) == ("tiny/small/seed1", condition)
        assert (one.why or "") == why
    # A crash after that is in the job's log, too.
    lock = tmp_path / "tiny/models/small/seed1/state/lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("process 7 on here\n")
    (one,) = status(tmp_path).trainings
    assert (one.condition, *one.log) == ("crashed", "a warning of torch")


LOGS = """
logs/mine/small/seed1/train
logs/mine/extract_corpus/train
scales/demo/logs/mine/binarize
logs/kept/binarize
logs/download/host/a.tgz
logs/paper/table1
logs/shown/table1
logs/preflight
"""


def test_a_task_that_was_removed_is_forgotten(tmp_path: Path) -> None:
    """Its logs stay. The folder of downloads and that of the papers' tables are no tasks."""
    for name in LOGS.split():
        log = tmp_path / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("2026-11-29 17:00:00, process 7 on here\nerror: a.en:3: bad\n")
    (tmp_path / "kept").mkdir()

    def names() -> set[str]:
        found = status(tmp_path)
        return {one.name for one in found.trainings} | {one.name for one in found.jobs}

    others = names()
    known = "kept/binarize download/host/a.tgz paper/table1 shown/table1 preflight"
    assert others == set(known.split())
    (tmp_path / "scales/demo/mine").mkdir()
    assert names() == others | {"demo/mine/binarize"}
    (tmp_path / "mine").mkdir()
    mine = {"mine/small/seed1", "mine/extract_corpus/train", "demo/mine/binarize"}
    assert names() == others | mine
    assert [one.name for one in status(tmp_path / "kept").jobs] == ["kept/binarize"]


def test_the_command_gives_json_of_what_can_be_read(
    tmp_path: Path, run: Terminal
) -> None:
    """Not of lost+found, where the results are a disk of their own."""
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "run/state").mkdir(parents=True)
    scandir = os.scandir

    def refuse(folder: Path) -> Any:
        if Path(folder).name == "lost+found":
            raise PermissionError("Permission denied")
        return scandir(folder)

    run.monkeypatch.setattr(os, "scandir", refuse)
    said = json.loads(run("status", tmp_path, "--json"))
    assert [one["condition"] for one in said["trainings"]] == ["not started"]
    with pytest.raises(SystemExit, match="nowhere: no such folder"):
        run("status", tmp_path / "nowhere")
    with pytest.raises(SystemExit, match="--watch: the output is not a terminal"):
        run("status", tmp_path, "--watch")
