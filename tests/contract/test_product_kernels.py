"""Which kernel a training computes its products by: the fastest, measured once."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from convs2s.models.kernels import choice, matmul
from convs2s.models.kernels.choice import fastest_kernel, heaviest, training_rates
from convs2s.models.kernels.matmul import Kernel
from convs2s.training.run import train
from tests.contract.score_files import read
from tests.support import tiny
from tests.support.refusals import refuses

SMALL = {(16, 8): 2, (4, 16): 1}


pytestmark = pytest.mark.usefixtures("cache")


def measured(patch: pytest.MonkeyPatch, **rates: float) -> None:
    """Let these rates be measured, beside 1 of BLAS."""
    patch.setattr(choice, "training_rates", Mock(return_value={"blas": 1.0, **rates}))


def test_few_shapes_stand_for_all() -> None:
    cut = heaviest({(8192, 4096): 2, (40_000, 2048): 1, (8, 8): 9, (4, 8): 1})
    # The arithmetic of both large ones, in a shape that takes no time.
    assert cut == {(512, 1024): 284, (8, 8): 9}


@pytest.mark.parametrize("slow", matmul.kernels())
def test_what_counts_is_processor_time_and_the_candidates_take_turns(
    monkeypatch: pytest.MonkeyPatch, slow: Kernel, kernel: Kernel
) -> None:
    """A clock that stands still but while the slow kernel computes."""
    turns: list[Kernel] = []

    def seconds(work: Callable[[], object], timer: object, number: int) -> float:
        assert (timer, number) == (time.process_time, 1)
        work()
        turns.append(matmul.in_use())
        return 2.0 if matmul.in_use() == slow else 1.0

    monkeypatch.setattr(choice, "timeit", seconds)
    monkeypatch.setattr(choice, "SHARED_SECONDS", 0.0)
    found = training_rates(SMALL)
    # A step takes three times 2 seconds, and multiplies 320 rows, three times two operations.
    assert found[slow] == 320 * choice.TRAINED_ROWS
    for name, rate in found.items():
        assert rate == (found[slow] if name == slow else 2 * found[slow])
    assert turns[:: len(SMALL)] == matmul.kernels() * choice.LEAST_ROUNDS
    assert matmul.in_use() == kernel


@pytest.mark.skipif(len(matmul.kernels()) < 2, reason="needs oneDNN")
def test_the_faster_one_by_more_than_noise_is_measured_once_for_each_shape(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    """What was measured is kept; a damaged file of it is named."""
    for rate, products, expected in (
        (1.2, SMALL, "blas"),
        (2.0, {(16, 8): 2}, "onednn"),
        (1.0, {(16, 8): 2}, "onednn"),
        (2.0, SMALL, "blas"),
    ):
        measured(monkeypatch, onednn=rate)
        assert fastest_kernel(products) == expected
    kept = cache / "kernels.json"
    first, _ = read(kept)
    for damaged in (3, {"blas": 1.0}):
        kept.write_text(json.dumps({first: damaged}))
        refuses("kernels.json: not what this program", fastest_kernel, SMALL)
    monkeypatch.setattr("torch.backends.mkldnn.is_available", Mock(return_value=False))
    assert fastest_kernel(SMALL) == "blas"


def test_without_a_cache_it_is_said_and_nothing_is_measured(
    task: Path, tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cache.parent.write_text("a file in the folder's place")
    settings = tiny.settings(maximum_epochs=1)
    train(tiny.job(task, tmp_path / "model.safetensors", settings))
    assert (
        "products are computed by blas, without a measurement" in capfd.readouterr().err
    )


def test_auto_is_bf16_where_it_is_faster_and_stays_so(
    monkeypatch: pytest.MonkeyPatch, task: Path, tmp_path: Path
) -> None:
    """By more than noise, beside the faster kernel."""
    settings = tiny.settings(maximum_epochs=1, precision="auto")
    # The second is made of the states of the first, whatever is measured then.
    for rate, expected in ((2.4, "fp32"), (2.6, "fp32"), (2.6, "bf16"), (2.4, "bf16")):
        measured(monkeypatch, onednn=2.0, bf16=rate)
        output = tmp_path / expected / "model.safetensors"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"{expected}{rate}"))
        train(tiny.job(task, output, settings))
        made = read(output.with_name("training.json"))["manifest"]
        assert made["identity"]["training"]["precision"] == "auto"
        assert made["precision"] == expected
