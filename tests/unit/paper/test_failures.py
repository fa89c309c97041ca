"""Why a run's numbers are not there, as its logs say."""

import os
from pathlib import Path

import pytest

from convs2s.config.settings import Settings
from convs2s.layout import Layout
from convs2s.paper.cells import Cell
from convs2s.paper.failures import STOPPED, failures_of, reason_in
from tests.support.cells import cells

LAYOUT = Layout("results/scales/demo", "downloads")
LOGS = "results/scales/demo/logs"
TRACEBACK = "Traceback (most recent call last):\n  File ...\n"


pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture
def cell(demo: Settings) -> Cell:
    return cells(demo, "table2")[0]


def write(path: str, text: str) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (
            "epoch 1\nconvs2s: error: the loss is not finite\n",
            "failed: the loss is not finite",
        ),
        ("convs2s: SIGTERM was received: run it again\n\n", STOPPED),
        ("error: interrupted: the same command makes it again\n", STOPPED),
        ("error: test.fr:3: no line\n", "failed: test.fr:3: no line"),
        (
            "Traceback (most recent call last):\n  File ...\ntorch.cuda.OutOfMemoryError: 4 GiB\n",
            "failed: torch.cuda.OutOfMemoryError: 4 GiB",
        ),
        (
            f"{TRACEBACK}RuntimeError: CUDA error: an illegal access\nCompile with `DSA` to see.\n",
            "failed: RuntimeError: CUDA error: an illegal access",
        ),
        (
            f"{TRACEBACK}KeyError: 1\n2026-11-27 10:00:00, process 7 on a: 1 worker\nepoch 1\n",
            None,
        ),
        ("convs2s: error: an earlier try\nepoch  2  perplexity 5\n", None),
        ("", None),
        (f"error: {'x' * 500}\n", "failed: " + "x" * 157 + "..."),
    ],
)
def test_the_fault_that_a_log_ends_with(
    tmp_path: Path, log: str, reason: str | None
) -> None:
    assert reason_in(write(str(tmp_path / "train.log"), log)) == reason


def test_without_a_log_nothing_failed(cell: Cell) -> None:
    assert failures_of([cell], LAYOUT, LOGS) == {}


def test_an_ensemble_fails_with_one_of_its_trainings(cell: Cell) -> None:
    model = LAYOUT.task(cell.task).model(cell.model, "seed1")
    write(model, "")
    write(f"{LOGS}/{cell.task}/{cell.model}/seed1/train.log", "error: of before\n")
    log = write(
        f"{LOGS}/{cell.task}/{cell.model}/seed2/train.log",
        "convs2s: error: no memory\n",
    )
    assert cell.runs == ("ensemble2",)
    assert failures_of([cell], LAYOUT, LOGS) == {
        cell.records[0].fingerprint: "failed: no memory"
    }
    log.write_text("epoch 1\n")  # it goes on
    assert failures_of([cell], LAYOUT, LOGS) == {}


def logs_of_ensemble(cell: Cell) -> str:
    """Write the files of both models; return where the logs of their ensemble are."""
    for member in ("seed1", "seed2"):
        write(LAYOUT.task(cell.task).model(cell.model, member), "")
    return f"{LOGS}/{cell.task}/{cell.model}/ensemble2"


def test_a_decoding_that_failed_says_so(cell: Cell) -> None:
    folder = logs_of_ensemble(cell)
    write(
        f"{folder}/{cell.testset}.beam5_en_de.decode.log", "error: a line is too long\n"
    )
    write(f"{folder}/valid.beam5_en_de.decode.log", "error: of another test set\n")
    assert failures_of([cell], LAYOUT, LOGS) == {
        cell.records[0].fingerprint: "failed: a line is too long"
    }


def test_the_failure_of_another_decoding_is_not_its_own(cell: Cell) -> None:
    folder = logs_of_ensemble(cell)
    write(f"{folder}/{cell.testset}.beam1.decode.log", "error: of another decoding\n")
    write(
        f"{folder}/{cell.testset}.{cell.decoding}.cuda.speed.log",
        "error: there is no GPU\n",
    )
    assert failures_of([cell], LAYOUT, LOGS) == {}
    tuning = f"{folder}/valid.{cell.decoding}.length_penalty.log"
    log = write(tuning, "error: of its own length penalty\n")
    assert failures_of([cell], LAYOUT, LOGS) == {
        cell.records[0].fingerprint: "failed: of its own length penalty"
    }
    os.utime(log, (0, 0))  # a later job has begun, or has ended well
    write(f"{folder}/{cell.testset}.{cell.decoding}.decode.log", "done in 3.0 s\n")
    assert failures_of([cell], LAYOUT, LOGS) == {}


def test_what_is_there_has_not_failed(cell: Cell) -> None:
    write(cell.paths[0], "{}")
    write(
        f"{LOGS}/{cell.task}/{cell.model}/seed2/train.log",
        "convs2s: error: no memory\n",
    )
    assert failures_of([cell], LAYOUT, LOGS) == {}


def test_a_log_that_may_not_be_read_states_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = write("train.log", "convs2s: error: a fault\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert reason_in(log) is None
