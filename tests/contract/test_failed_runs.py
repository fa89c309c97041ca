"""Why a run's numbers are not there, as its logs say."""

import os
from pathlib import Path

import pytest

from convs2s.config.settings import Settings
from convs2s.files.text import write_lines
from convs2s.layout import Layout
from convs2s.paper.cells import cells
from convs2s.paper.failures import failures_of, reason_in
from tests.support.refusals import rows

LAYOUT = Layout("results", "downloads")

pytestmark = pytest.mark.usefixtures("in_folder")


# The end of a log, and the reason that it states, if it does.
LOGS = r"""
epoch 1\nconvs2s: error: a fault\n => failed: a fault
error: test.fr:3: no line\n => failed: test.fr:3: no line
Traceback (most recent call last):\n  File\nOSError: 4 GiB\nCompile it.\n => failed: OSError: 4 GiB
Traceback (most recent call last):\n  File\nKeyError: 1\n10:00:00, process 7 on a: 1 worker\n =>
convs2s: SIGTERM was received: run it again\n\n => stopped, rerun to resume
error: interrupted: the same command makes it again\n => stopped, rerun to resume
convs2s: error: an earlier try\nepoch  2  perplexity 5\n =>
 =>
"""


def test_the_fault_that_a_log_ends_with() -> None:
    file = Path("train.log")
    for log, reason in (
        *rows(LOGS),
        (f"error: {'x' * 500}\n", "failed: " + "x" * 157 + "..."),
        (f"{'x' * 9000}\nerror: a fault\n", "failed: a fault"),
    ):
        file.write_text(log)
        assert (reason_in(file) or "") == reason, log


def test_an_ensemble_fails_with_one_of_its_trainings(demo: Settings) -> None:
    cell = cells(demo, "table2")[0]
    write_lines(LAYOUT.task(cell.task).model(cell.model, "seed1"), [])
    logs = f"logs/{cell.task}/{cell.model}"
    write_lines(f"{logs}/seed1/train.log", ["error: of before"])
    log = f"{logs}/seed2/train.log"
    write_lines(log, ["convs2s: error: no memory"])
    failed = {cell.records[0].fingerprint: "failed: no memory"}
    assert failures_of([cell], LAYOUT, "logs") == failed
    write_lines(log, ["epoch 1"])  # it goes on
    assert failures_of([cell], LAYOUT, "logs") == {}
    write_lines(log, ["error: a fault"])
    write_lines(cell.paths[0], ["{}"])  # what is there has not failed
    assert failures_of([cell], LAYOUT, "logs") == {}


# The logs that end with an error, the newest last, and that which counts, if one does.
JOBS = """
test_filtered.beam5_en_de.decode => test_filtered.beam5_en_de.decode
valid.beam5_en_de.length_penalty => valid.beam5_en_de.length_penalty
valid.beam5_en_de.nbest test_filtered.beam5_en_de.bleu => test_filtered.beam5_en_de.bleu
valid.beam5_en_de.decode =>
test_filtered.beam1.decode =>
test_filtered.beam5_en_de.cuda.speed =>
"""


@pytest.mark.parametrize(("logs", "failed"), rows(JOBS))
def test_a_job_after_the_trainings_fails_by_its_own_newest_log(
    demo: Settings, logs: str, failed: str
) -> None:
    cell = cells(demo, "table2")[0]  # of an ensemble of two
    assert (cell.testset, cell.decoding) == ("test_filtered", "beam5_en_de")
    for member in ("seed1", "seed2"):
        write_lines(LAYOUT.task(cell.task).model(cell.model, member), [])
    for time, name in enumerate(logs.split()):
        path = f"logs/{cell.task}/{cell.model}/ensemble2/{name}.log"
        write_lines(path, [f"error: {name}"])
        os.utime(path, (time, time))
    failures = failures_of([cell], LAYOUT, "logs")
    assert list(failures.values()) == [f"failed: {name}" for name in failed.split()]
