"""``convs2s status`` tells from files alone what became of real trainings and jobs."""

import errno
import fcntl
import io
import json
import multiprocessing
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from convs2s.cli.main import main
from convs2s.errors import UserError
from convs2s.paper.failures import STOPPED
from convs2s.pipeline.status import SHOWN_LINES, Status, TrainingStatus, status
from convs2s.pipeline.status_view import view
from convs2s.training import state_folder
from convs2s.training.run import train
from tests.support import tiny
from tests.support.jobs import job_command
from tests.support.processes import wait_for

ENDLESS: dict[str, Any] = {"maximum_epochs": 9999, "learning_rate": 0.001}
PATIENCE = 300


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.prepare(tmp_path_factory.mktemp("results") / "tiny").parent


@pytest.fixture(scope="module")
def found(results: Path) -> Iterator[dict[str, Any]]:
    """The status of a folder in which everything has happened and two trainings still run."""
    live: list[BaseProcess] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_folder, "SECONDS_BETWEEN_NOTES", 0.0)
        try:
            for name in ("running", "killed", "held"):
                live.append(start(results, name, **ENDLESS))
                wait_for(partial(is_under_way, results, name))
                os.kill(
                    live[-1].pid or 0, signal.SIGSTOP
                )  # it lives on, and leaves others the machine
            live[1].kill()
            live[1].join(PATIENCE)
            for one in (
                start(results, "finished", maximum_epochs=2),
                start(results, "limit", {"time_limit": 1 / 60}, **ENDLESS),
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
    results: Path, model: str, job: dict[str, Any] | None = None, **training: Any
) -> BaseProcess:
    """Start a training as the workflow has it, in a process of its own."""
    output = results / f"tiny/models/{model}/seed1/model.safetensors"
    one = tiny.job(results / "tiny", output, tiny.settings(**training), **job or {})
    process = multiprocessing.get_context("fork").Process(
        target=quietly, args=(train, one)
    )
    process.start()
    return process


def quietly(function: Callable[[Any], None], argument: Any) -> None:
    """End with an exit code, as the command does, where there is an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        function(argument)
    except UserError as error:
        os._exit(error.exit_code)


def is_under_way(results: Path, model: str) -> bool:
    path = results / f"tiny/models/{model}/seed1/state/progress.json"
    if not path.exists():
        return False
    progress = json.loads(path.read_text())
    return progress["updates"] > 10 and progress["seconds"] is not None


def test_each_training_is_told_apart(found: dict[str, Any]) -> None:
    assert {name: one.condition for name, one in found.items()} == {
        "running": "running",
        "held": "locked",
        "killed": "crashed",
        "diverged": "crashed",
        "limit": "stopped",
        "finished": "finished",
    }


def test_a_running_one_says_how_far_it_is(found: dict[str, Any]) -> None:
    one = found["running"]
    assert one.owner is not None
    assert one.owner.endswith(f" on {os.uname().nodename}")
    assert one.epochs == 9999
    assert one.updates > 10
    assert one.loss > 0
    assert one.perplexity > 1
    assert one.tokens_per_second > 0
    assert one.seconds > 0
    assert one.state_seconds >= 0


def test_a_locked_one_says_by_whom(found: dict[str, Any]) -> None:
    one = found["held"]
    assert one.why.startswith(f"{one.owner} holds it; process ")
    assert one.why.endswith(" was refused")


def test_a_crashed_one_says_its_last_words(found: dict[str, Any]) -> None:
    killed, diverged = found["killed"], found["diverged"]
    assert killed.why.endswith(
        "has ended without a word: killed, or its machine went down"
    )
    assert any("epoch " in line for line in killed.log)
    assert diverged.why.startswith("training diverged in epoch 1 at update ")
    assert diverged.log[-1] == f"error: {diverged.why}"
    assert len(killed.log) <= SHOWN_LINES


def test_a_stopped_one_says_why(found: dict[str, Any]) -> None:
    one = found["limit"]
    assert "the time limit of 0.0166667 minutes is near; saved in epoch " in one.why
    assert one.log == ()
    assert one.state_seconds is not None


def test_a_finished_one_has_its_result(found: dict[str, Any]) -> None:
    one = found["finished"]
    assert one.epoch == 2
    why = (
        r"the recipe's maximum of 2 epochs is reached; permuted sources [\d.e+]+ times"
    )
    assert re.fullmatch(why, one.why)
    assert one.best_epoch in (1, 2)
    assert one.perplexity > 1


def test_the_view_names_everything(
    found: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    from convs2s.pipeline.status_view import console

    console().print(view(Status(tuple(found.values()), ())))
    said = capsys.readouterr().out
    assert "trainings: 1 running, 1 locked, 2 crashed, 1 stopped, 1 finished" in said
    assert "tiny/diverged/seed1 crashed:\n" in said
    console().print(view(Status(tuple(found.values()) * 50, ()), rows=20))
    said = capsys.readouterr().out
    assert len(said.splitlines()) <= 20
    assert "and 288 more" in said
    console().print(view(Status(tuple(found.values()), ()), rows=2))
    assert "crashed:\n" not in capsys.readouterr().out  # no room for it


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("rows", [None, 20])
def test_a_terminal_shows_how_far_a_training_of_a_long_name_is(
    width: int, rows: int | None
) -> None:
    """A recipe without a last epoch knows the time of its epoch alone."""
    one = TrainingStatus(
        "scales/multi30k_trained/multi30k_en_de/long_wmt14_en_de_fp32/seed1",
        "running",
        owner="process 28096 on a_node_of_the_cluster",
        epoch=12,
        batch=10,
        batches=100,
        updates=6_000,
        loss=2.345,
        perplexity=9.87,
        tokens_per_second=1_756,
        seconds_of_epoch=250.0,
        state_seconds=120.0,
    )
    screen = Console(width=width, file=io.StringIO())
    screen.print(view(Status((one,), ()), rows=rows, width=width))
    assert isinstance(screen.file, io.StringIO)
    lines = screen.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert lines[1].split()[:3] == ["training", "is", "epoch"]
    assert {"running", "12", "10%", "9.87", "1,756", "4", "min", "process"} <= {
        *lines[2].split()
    }
    assert ("seed1" in lines[2] and len(lines) == 3) == (rows is not None)
    assert ("6,000" in lines[2]) == (width == 120)


def test_a_lock_without_a_training(tmp_path: Path) -> None:
    state = tmp_path / "run/state"
    state.mkdir(parents=True)
    (state / "lock").write_text("process 7 on elsewhere\n")
    with (state / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (one,) = status(tmp_path).trainings
        assert one.condition == "locked"
        assert (
            one.why
            == "process 7 on elsewhere holds it and has noted no progress of a training"
        )
    (one,) = status(tmp_path).trainings
    assert one.condition == "crashed"


def test_a_process_elsewhere_whose_lock_cannot_be_seen_is_believed(
    tmp_path: Path,
) -> None:
    state = tmp_path / "run/state"
    state.mkdir(parents=True)
    (state / "lock").write_text("process 7 on elsewhere\n")
    said = {
        "owner": "process 7 on elsewhere",
        "phase": "training",
        "written": time.time(),
    }
    (state / "progress.json").write_text(json.dumps(said))
    assert status(tmp_path).trainings[0].condition == "running"
    for old in ({"written": time.time() - 3600}, {"written": None}, {"epoch": "two"}):
        (state / "progress.json").write_text(json.dumps({**said, **old}))
        assert status(tmp_path).trainings[0].condition == "crashed"


@pytest.mark.parametrize(
    ("work", "condition", "last"),
    [
        ("pass", "finished", None),
        ("raise UserError('a.en:3: bad')", "crashed", "error: a.en:3: bad"),
        ("1 / 0", "crashed", "ZeroDivisionError: division by zero"),
        (
            "raise KeyboardInterrupt",
            "crashed",
            "error: interrupted: the same command makes it",
        ),
        ("os.kill(os.getpid(), 9)", "crashed", "at work"),
    ],
)
def test_a_jobs_end_is_in_its_log(
    tmp_path: Path, work: str, condition: str, last: str | None
) -> None:
    log = tmp_path / "logs/tiny/small/seed1/test.greedy.decode.log"
    subprocess.run(job_command(log, work), check=False, capture_output=True)
    (one,) = status(tmp_path).jobs
    assert (one.name, one.condition) == (
        "tiny/small/seed1/test.greedy.decode",
        condition,
    )
    if last:
        assert one.log[-1].startswith(last)


def test_a_running_job_holds_its_log(tmp_path: Path) -> None:
    log = tmp_path / "logs/tiny/prepare.log"
    with subprocess.Popen(job_command(log, "time.sleep(600)")) as process:
        try:
            wait_for(lambda: log.exists() and "at work" in log.read_text())
            (one,) = status(tmp_path).jobs
            assert one.condition == "running"
            assert one.owner == f"process {process.pid} on {os.uname().nodename}"
        finally:
            process.send_signal(signal.SIGKILL)


def test_a_training_that_failed_before_its_states(tmp_path: Path) -> None:
    log = tmp_path / "logs/tiny/small/seed1/train.log"
    log.parent.mkdir(parents=True)
    for text, condition, why in (
        (
            "convs2s: error: train.arrow: no such file\n",
            "crashed",
            "train.arrow: no such file",
        ),
        (
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n",
            "crashed",
            "ModuleNotFoundError: No module named 'torch'",
        ),
        ("convs2s: SIGTERM was received: run it again\n", "stopped", STOPPED),
        ("a warning of torch\n", "not started", None),
    ):
        log.write_text(text)
        (one,) = status(tmp_path).trainings
        assert (one.name, one.condition, one.why) == (
            "tiny/small/seed1",
            condition,
            why,
        )


def test_a_command_that_failed_is_no_finished_job(tmp_path: Path) -> None:
    """Its log has no line that says who works."""
    log = tmp_path / "logs/report.log"
    log.parent.mkdir()
    log.write_text("WorkflowError: a file is missing\n")
    (one,) = status(tmp_path).jobs
    assert (one.name, one.condition) == ("report", "crashed")


def test_the_command_gives_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run/state").mkdir(parents=True)
    main(["status", str(tmp_path), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert [one["condition"] for one in said["trainings"]] == ["not started"]
    with pytest.raises(SystemExit, match="nowhere: no such folder"):
        main(["status", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit, match="--watch: the output is no terminal"):
        main(["status", str(tmp_path), "--watch"])


def test_a_folder_that_cannot_be_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as lost+found, where the results are a disk of their own."""
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "run/state").mkdir(parents=True)
    scandir = os.scandir

    def refuse(folder: Path) -> Any:
        if Path(folder).name == "lost+found":
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert [one.name for one in status(tmp_path).trainings] == ["run"]


def test_the_training_texts_job_is_no_training(tmp_path: Path) -> None:
    log = tmp_path / "logs/tiny/extract_corpus/train.log"
    subprocess.run(job_command(log, "pass"), check=True, capture_output=True)
    found = status(tmp_path)
    assert found.trainings == ()
    assert [one.name for one in found.jobs] == ["tiny/extract_corpus/train"]
