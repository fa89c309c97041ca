"""Updates that replay recorded gradients are those that compute them operation by operation."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.data.batches import Batch
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.kernels import dropout
from convs2s.models.recorded_ensemble import Recording
from convs2s.training import recorded
from convs2s.training.loading import LossInputs
from convs2s.training.recorded import RecordedGradient, fill_up
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater, UpdateReport
from convs2s.training.workers import ALONE, Workers
from tests.invariants.recordings import Again, CpuRecording
from tests.support import tiny
from tests.support.apart import Apart
from tests.support.updates import make_update

Result = tuple[list[UpdateReport], list[Tensor], Updater]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[CpuRecording]:
    """The recordings that updates make; dropout draws its masks by operations, as on a GPU."""

    def drawn(count: int) -> Tensor:
        return torch.randint(-(1 << 15), 1 << 15, (count,), dtype=torch.int16)

    monkeypatch.setattr(dropout, "random_bits", drawn)
    return []


def updated(
    task: Path,
    recording: Callable[[], Recording] | None,
    workers: Workers = ALONE,
    **changes: Any,
) -> Result:
    """Make the updates of two epochs; return their figures and the parameters after them."""
    limits = {"sentences": 32, "micro_batch_tokens": 80}
    one = tiny.trainer(
        task,
        task / "none",
        workers=workers,
        recording=recording,
        batch=limits,
        **changes,
    )
    reports = []
    for epoch in (1, 2):
        for number, rows in enumerate(one.plan(epoch)):
            moment = Moment(epoch, number, 0.25)
            reports.append(make_update(one.updater, one.train, rows, moment))
    parameters = [each.detach() for each in one.network.parameters()]
    return reports, parameters, one.updater


@pytest.mark.parametrize(
    ("workers", "changes"),
    [
        (ALONE, {"dropout": 0.2}),
        (Apart(1, 2), {"dropout": 0.2, "label_smoothing": 0.1}),
    ],
    ids=["alone", "worker"],
)
def test_to_the_bit_for_the_same_shapes(
    task: Path, made: list[CpuRecording], workers: Workers, changes: dict[str, Any]
) -> None:
    def recording() -> CpuRecording:
        made.append(CpuRecording())
        return made[-1]

    found, parameters, _ = updated(task, recording, workers, **changes)
    expected, theirs, _ = updated(task, Again, workers, **changes)
    assert found == expected
    assert all(map(torch.equal, parameters, theirs))
    assert sum(one.replays for one in made) > len(made) > 0


def assert_close(found: Result, expected: Result) -> None:
    for ours, theirs in zip(found[0], expected[0], strict=True):
        assert vars(ours) == pytest.approx(vars(theirs), rel=1e-9)
    torch.testing.assert_close(found[1], expected[1], atol=1e-9, rtol=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_what_fills_a_shape_up_counts_for_nothing(task: Path, smoothing: float) -> None:
    found = updated(task, Again, label_smoothing=smoothing)
    assert_close(found, updated(task, None, label_smoothing=smoothing))


def test_a_gpu_that_cannot_record_has_a_way_out(
    task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Again):
        def record(self, work: Callable[[], Any]) -> Any:
            raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(RuntimeError, match="not permitted") as failed:
        updated(task, Failing)
    assert f"With {recorded.RECORDS_NOTHING}=1 in" in failed.value.__notes__[0]
    monkeypatch.setenv(recorded.RECORDS_NOTHING, "1")
    assert_close(updated(task, Failing), updated(task, None))


def test_memory_that_runs_out_is_that_of_recordings_first(task: Path) -> None:
    kept: list[weakref.ref[Recording]] = []

    def recording() -> Recording:
        if len(kept) == 2:
            kept.append(kept[0])
            raise torch.OutOfMemoryError
        one = Again()
        kept.append(weakref.ref(one))
        return one

    found = updated(task, recording)
    assert_close(found, updated(task, None))
    assert found[2].fitting is not None
    # Those of before are gone, and others were made since.
    assert [one() is None for one in kept[:4]] == [True, True, True, False]


def test_the_shape_that_has_not_come_for_longest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorded, "MOST_SHAPES", 2)
    made: list[CpuRecording] = []

    def recording() -> CpuRecording:
        made.append(CpuRecording())
        return made[-1]

    def add(inputs: LossInputs, _: int | Tensor) -> Tensor:
        return inputs.source.sum()

    one = RecordedGradient("cpu", recording)
    found = []
    for length in (1, 1, 2, 1, 3, 1, 2, 2):
        tokens = torch.ones(2, length)
        inputs = LossInputs(tokens, tokens, None, tokens, tokens, None)
        found.append((int(one.add(add, inputs, 1)), len(made)))
    # The lengths 1, of which there is a recording, and at last 2, which had to come twice again.
    numbers = [0, 1, 1, 1, 1, 1, 1, 2]
    assert found == list(zip([2, 2, 4, 2, 6, 2, 4, 4], numbers, strict=True))


def test_a_gradient_leaves_no_node_that_a_recording_would_meet(task: Path) -> None:
    """A node that was made outside of a CUDA graph cannot be recorded in it."""
    limits = {"sentences": 32, "micro_batch_tokens": 80}
    one = tiny.trainer(task, task / "none", batch=limits, workers=Apart(0, 2))

    def nodes() -> list[Any]:
        views = [each.view_as(each).grad_fn for each in one.network.parameters()]
        return [view.next_functions[0][0] for view in views if view is not None]

    marked = nodes()
    for node in marked:
        node.metadata["seen"] = True
    gc.disable()
    make_update(one.updater, one.train, np.arange(16), Moment(1, 0, 0.1))
    marked.clear()
    del node
    left = [node for node in nodes() if node.metadata]
    gc.enable()
    assert not left


@pytest.mark.parametrize(
    ("rows", "filled"), [(1, 1), (7, 7), (9, 10), (33, 40), (256, 256), (257, 320)]
)
def test_rows_are_filled_up_by_a_quarter_at_most(rows: int, filled: int) -> None:
    tokens = np.full((rows, 8), 5)
    batch = fill_up(Batch(tokens, tokens, tokens))
    for side, first in zip(vars(batch).values(), (END, END, PADDING), strict=True):
        assert (side[:rows] == 5).all()
        assert (side[rows:, 0] == first).all()
        assert (side[rows:, 1:] == PADDING).all()
        assert len(side) == filled
