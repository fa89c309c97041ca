"""GPUs of trainings that share a machine, by their locks alone."""

import threading
from pathlib import Path

import pytest

from convs2s import devices
from convs2s.devices import own_gpus
from convs2s.errors import UserError
from convs2s.pipeline.process import granted_gpus


def test_two_trainings_on_two_gpus_get_one_each(tmp_path: Path) -> None:
    with own_gpus({}, 2, 1, tmp_path) as first, own_gpus({}, 2, 1, tmp_path) as second:
        assert (first, second) == (["0"], ["1"])
    stated = {"CUDA_VISIBLE_DEVICES": "3,GPU-1f"}
    with own_gpus(stated, 2, 1, tmp_path) as first, own_gpus(stated, 2, 1, tmp_path) as second:
        assert (first, second) == (["3"], ["GPU-1f"])


def test_a_training_waits_until_as_many_are_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(devices, "SECONDS_BETWEEN_TRIES", 0.01)
    started: list[list[str]] = []

    def wait() -> None:
        with own_gpus({}, 2, 2, tmp_path) as both:
            started.append(both)

    waiting = threading.Thread(target=wait)
    with own_gpus({}, 2, 1, tmp_path):
        waiting.start()
        waiting.join(0.1)
        assert started == []
        with own_gpus({}, 2, 1, tmp_path) as other:  # what waits holds nothing
            assert other == ["1"]
    waiting.join()
    assert started == [["0", "1"]]
    assert capfd.readouterr().err == "waiting for 2 of the GPUs 0, 1\n"


def test_what_a_scheduler_has_granted_is_taken_without_a_lock(tmp_path: Path) -> None:
    granted = {"CUDA_VISIBLE_DEVICES": "0"}  # another card in each job
    with own_gpus(granted, 1, 1, tmp_path) as one, own_gpus(granted, 1, 1, tmp_path) as other:
        assert one == other == ["0"]


def test_more_gpus_than_there_are_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"2 GPUs are asked for, but this job sees 1; ask for fewer"),
        own_gpus({}, 1, 2, tmp_path),
    ):
        pass


@pytest.mark.parametrize(("value", "count"), [("", 0), ("0", 1), ("0,1", 2), ("NoDevFiles", 0)])
def test_granted_gpus_are_counted(value: str, count: int) -> None:
    assert granted_gpus({"CUDA_VISIBLE_DEVICES": value}) == count
