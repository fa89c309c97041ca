"""Which kernel a training computes its products by."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.models.kernels import choice, matmul
from convs2s.models.kernels.choice import (
    Product,
    fastest_kernel,
    heaviest,
    training_rates,
)
from convs2s.models.kernels.matmul import Kernel
from convs2s.training import run
from convs2s.training.run import train
from tests.support import tiny
from tests.support.interrupted import train_until

SMALL = [Product(8, 16, 2), Product(16, 4, 1)]
both = pytest.mark.skipif(len(matmul.kernels()) < 2, reason="needs oneDNN")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "convs2s"


def measure(monkeypatch: pytest.MonkeyPatch, **found: float) -> None:
    monkeypatch.setattr(choice, "training_rates", lambda _: found)


def test_what_is_measured_is_a_rate_of_each_kernel_and_the_one_in_use_stays(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel
) -> None:
    monkeypatch.setattr(choice, "SHARED_SECONDS", 0.0)
    found = training_rates(SMALL)
    assert list(found) == matmul.kernels()
    assert all(rate > 0 for rate in found.values())
    assert matmul.in_use() == kernel


def test_a_network_without_products_needs_no_measurement(cache: Path) -> None:
    assert fastest_kernel([]) == matmul.kernels()[0]
    assert not cache.exists()


def test_few_shapes_stand_for_all() -> None:
    found = [
        Product(4096, 8192, 2),
        Product(2048, 40_000, 1),
        Product(8, 8, 9),
        Product(8, 4, 1),
    ]
    cut = heaviest(found)
    # The arithmetic of both large ones, in a shape that takes no time.
    assert cut == [Product(1024, 512, 284), Product(8, 8, 9)]


@pytest.mark.parametrize("slow", matmul.kernels())
def test_what_counts_is_processor_time_and_the_candidates_take_turns(
    monkeypatch: pytest.MonkeyPatch, slow: Kernel
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
    others = [rate for kernel, rate in found.items() if kernel != slow]
    assert all(rate == 2 * found[slow] for rate in others)
    assert turns[:: len(SMALL)] == matmul.kernels() * choice.LEAST_ROUNDS


@both
@pytest.mark.parametrize(
    ("rate", "expected"), [(2.0, "onednn"), (1.2, "blas"), (0.5, "blas")]
)
def test_the_faster_one_by_more_than_noise(
    monkeypatch: pytest.MonkeyPatch, rate: float, expected: Kernel
) -> None:
    measure(monkeypatch, blas=1.0, onednn=rate)
    assert fastest_kernel(SMALL) == expected


def test_it_is_measured_once_for_each_shape(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    measure(monkeypatch, blas=1.0, onednn=2.0)
    assert fastest_kernel(SMALL) == "onednn"
    measure(monkeypatch, blas=2.0, onednn=1.0)
    assert fastest_kernel(SMALL) == "onednn"
    assert fastest_kernel(SMALL[:1]) == "blas"
    assert len(json.loads((cache / "kernels.json").read_text())) == 2


def test_a_damaged_cache_is_named(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "kernels.json").write_text('{"a": 3}')
    with pytest.raises(UserError, match=r"kernels\.json: not what this program keeps"):
        fastest_kernel(SMALL)


def test_without_a_cache_it_is_said_and_nothing_is_measured(
    task: Path, tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cache.parent.write_text("a file in the folder's place")
    train(
        tiny.job(task, tmp_path / "model.safetensors", tiny.settings(maximum_epochs=1))
    )
    assert "products are computed by blas, unmeasured" in capfd.readouterr().err


@both
def test_a_training_goes_on_with_the_kernel_that_it_began_with(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = (
        tiny.job(task, tmp_path / name / "model.safetensors") for name in ("a", "b")
    )
    monkeypatch.setattr(run, "fastest_kernel", lambda _: "onednn")
    train(whole)
    train_until(cut, epoch=1)
    monkeypatch.setattr(run, "fastest_kernel", lambda _: "blas")
    train(cut)
    assert sha256(cut.output) == sha256(whole.output)
    made = json.loads(cut.output.with_name("training.json").read_text())["manifest"]
    assert made["products"] == "onednn"


def test_a_pinned_kernel_that_is_not_here_is_refused(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul, "kernels", lambda: ["blas"])
    with pytest.raises(
        UserError, match=r"products onednn: this machine has only blas;"
    ):
        train(tiny.job(task, tmp_path / "model.safetensors", products="onednn"))
    assert not list((tmp_path / "state").glob("*/kernels.json"))


def test_a_kernel_that_is_not_here_is_named(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(monkeypatch, blas=1.0)
    job = tiny.job(
        task, tmp_path / "model.safetensors", tiny.settings(maximum_epochs=1)
    )
    train(job)
    (kernels,) = (tmp_path / "state").glob("*/kernels.json")
    kernels.write_text('{"products": "abacus"}')
    with pytest.raises(
        UserError, match=r"kernels\.json: says .*abacus.*, which this machine"
    ):
        train(job)
