"""What a worker keeps in the memory of the CPU where it computes elsewhere."""

import gc
import re
from pathlib import Path

import pytest

from convs2s.training import run
from convs2s.training.identity import TrainingJob
from convs2s.training.trainer import Trainer
from tests.support import tiny
from tests.support.together import start

STATUS = Path("/proc/self/status")
WIDE = [{"layers": 10, "width": 512, "kernel": 3}]


class StartedError(Exception):
    """A training has been started, which was all that was to be seen of it."""


def memory_of_a_start(jobs: list[TrainingJob]) -> list[tuple[int, int]]:
    """Start to train on a device that needs no memory; return what is kept, and the parameters."""
    sizes: list[tuple[int, int]] = []

    def stop(self: Trainer) -> None:
        parameters = list(self.network.parameters())
        assert {one.device.type for one in parameters} == {"meta"}
        gc.collect()
        # Memory that no file lies behind.
        kilobytes = re.findall(r"RssAnon:\s+(\d+)", STATUS.read_text())
        sizes.append((int(kilobytes[0]) << 10, sum(one.nbytes for one in parameters)))
        raise StartedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "worker_device", lambda *_: "meta")
        patch.setattr(Trainer, "run", stop)
        for job in jobs:
            with pytest.raises(StartedError):
                run.train(job)
    return sizes


@pytest.mark.skipif(not STATUS.exists(), reason="Linux tells what a process keeps")
def test_the_parameters_are_not_kept_where_they_were_made(
    task: Path, tmp_path: Path
) -> None:
    jobs = [  # the first one starts the libraries
        tiny.job(task, tmp_path / "tiny" / "model"),
        tiny.job(task, tmp_path / "wide" / "model", tiny.settings({"decoder": WIDE})),
    ]
    [sizes] = start(tmp_path / "at", 1, memory_of_a_start, jobs)
    (before, _), (kept, parameters) = sizes
    assert parameters > 48 << 20
    assert kept - before < 0.25 * parameters
