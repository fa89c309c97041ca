"""An update is the same however its batch is split, padded, compiled, recorded or read ahead."""

import gc
import threading
import weakref
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.errors import UserError
from convs2s.models.kernels import dropout
from convs2s.models.recorded_ensemble import Recording
from convs2s.training import recorded
from convs2s.training.loading import AHEAD, LossInputs, ahead
from convs2s.training.recorded import RecordedGradient
from convs2s.training.schedule import Moment
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater, UpdateReport
from convs2s.training.workers import ALONE
from tests.invariants.gpu import READS, Again, Recorder, counted_waits
from tests.support import tiny
from tests.support.networks import lstm, rnn
from tests.support.tiny import make_update
from tests.support.together import Apart

Result = tuple[list[UpdateReport], list[Tensor], Trainer]


def updated(task: Path, tokens: int | None = 80, **changes: Any) -> Result:
    """Make the updates of two epochs; return their figures and the parameters after them."""
    limits = {"sentences": 32, "micro_batch_tokens": tokens}
    one = tiny.trainer(task, task / "none", batch=limits, **changes)
    reports = []
    for epoch in (1, 2):
        for number, rows in enumerate(one.plan(epoch)):
            moment = Moment(epoch, number, 0.25)
            reports.append(make_update(one.updater, one.train, rows, moment))
    return reports, [each.detach() for each in one.network.parameters()], one


def assert_close(found: Result, expected: Result, tolerance: float = 1e-9) -> None:
    for ours, theirs in zip(found[0], expected[0], strict=True):
        assert vars(ours) == pytest.approx(vars(theirs), rel=tolerance)
    torch.testing.assert_close(found[1], expected[1], atol=tolerance, rtol=0)


@pytest.mark.parametrize(
    ("changes", "shared", "tolerance"),
    [
        ({"tokens": None}, {}, 1e-9),
        ({"recording": Again}, {}, 1e-9),
        ({"recording": Again, "tokens": None}, {"label_smoothing": 0.1}, 1e-9),
        pytest.param({"compile": True}, {"dropout": 0.2}, 1e-6, marks=pytest.mark.slow),
    ],
)
def test_the_same_updates(
    task: Path, changes: dict[str, Any], shared: dict[str, Any], tolerance: float
) -> None:
    """Also where shapes are filled up for a recording: what fills them counts for nothing."""
    found = updated(task, **changes, **shared)
    expected = updated(task, **shared)
    assert_close(found, expected, tolerance)
    other, one = found[2], expected[2]
    loss = one.updater.validate(one.valid)
    assert other.updater.validate(other.valid) == pytest.approx(loss, abs=tolerance)
    # Shapes are as small as can be, but for a recording.
    multiple = 8 if "recording" in changes else 1
    assert (one.updater.multiple, other.updater.multiple) == (1, multiple)
    for _, inputs in other.updater.load(other.train, np.arange(16)).micro_batches:
        assert inputs.source.shape[1] % multiple == 0


def test_compiled_shapes_are_as_small_as_can_be_on_a_cpu(task: Path) -> None:
    assert tiny.trainer(task, task / "none", compile=True).updater.multiple == 1


# ---- recorded gradients ----


def drawn(count: int) -> Tensor:
    """Draw the bits of dropout by an operation, as on a GPU."""
    return torch.randint(-(1 << 15), 1 << 15, (count,), dtype=torch.int16)


def test_to_the_bit_for_the_same_shapes(
    task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dropout, "random_bits", drawn)
    changes: dict[str, Any] = {"dropout": 0.2, "label_smoothing": 0.1}
    for workers in (ALONE, Apart(1, 2)):
        recorder = Recorder()
        changes["workers"] = workers
        found, parameters, _ = updated(task, recording=recorder, **changes)
        expected, theirs, _ = updated(task, recording=Again, **changes)
        assert found == expected
        assert all(map(torch.equal, parameters, theirs))
        assert sum(one.replays for one in recorder.made) > len(recorder.made) > 0


def test_a_gpu_that_cannot_record_has_a_way_out(
    task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Mock()
    failing().record.side_effect = RuntimeError("not permitted when capturing")
    with pytest.raises(RuntimeError, match="not permitted") as failed:
        updated(task, recording=failing)
    assert f"With {recorded.RECORDS_NOTHING}=1 in" in failed.value.__notes__[0]
    monkeypatch.setenv(recorded.RECORDS_NOTHING, "1")
    updated(task, recording=failing)


def test_memory_that_runs_out_is_that_of_recordings_first(task: Path) -> None:
    kept: list[weakref.ref[Recording]] = []

    def recording() -> Recording:
        if len(kept) == 2:
            kept.append(kept[0])
            raise torch.OutOfMemoryError
        one = Again()
        kept.append(weakref.ref(one))
        return one

    found = updated(task, recording=recording)
    assert_close(found, updated(task))
    assert found[2].updater.fitting is not None
    # Those of before are gone, and others were made since.
    assert [one() is None for one in kept[:4]] == [True, True, True, False]


def test_the_shape_that_has_not_come_for_longest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorded, "MOST_SHAPES", 2)
    gradient = RecordedGradient("cpu", Recorder())

    def inputs(length: int) -> LossInputs:
        tokens = torch.ones(2, length)
        return LossInputs(tokens, tokens, None, tokens, tokens, None)

    for length in (1, 2, 1, 3):
        gradient.add(lambda given, _: given.source.sum(), inputs(length), 1)
    known = [length for length in (1, 2, 3) if gradient.replays(inputs(length))]
    assert known == [1, 3]


def test_a_gradient_leaves_no_node_that_a_recording_would_meet(task: Path) -> None:
    """A node that was made outside of a CUDA graph cannot be recorded in it."""
    limits = {"micro_batch_tokens": 80}
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


# ---- what is read before its turn ----


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("loading")]


def test_items_are_loaded_in_a_thread_before_their_turn_and_fail_in_it() -> None:
    """No thread outlives the reader, whether it has failed or reads no more."""
    taken: list[int] = []

    def load(item: int) -> int:
        assert threading.current_thread().name in threads()
        taken.append(item)
        if item == 7:
            raise UserError("pair 7 is damaged")
        return item

    with closing(ahead(load, range(100))) as loaded:
        assert next(loaded) == 0
        assert len(taken) <= 2 + AHEAD
    assert not threads()
    with closing(ahead(load, range(100))) as loaded:
        assert [next(loaded) for _ in range(7)] == list(range(7))
        with pytest.raises(UserError, match="pair 7 is damaged"):
            next(loaded)
    assert not threads()


def test_a_training_closes_what_is_read_ahead(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = tiny.trainer(task, tmp_path)
    monkeypatch.delattr(Updater, "start")
    with trainer.folder.locked(), pytest.raises(AttributeError):
        trainer.run()
    assert not threads()


# ---- what waits for the device ----


def test_an_update_waits_for_nothing(task: Path) -> None:
    for optimizer in ("nesterov", "adam"):
        one = tiny.trainer(task, task / "none", dropout=0.2, optimizer=optimizer)
        loaded = one.updater.load(one.train, np.arange(16))
        # The first one sets up.
        started = [one.updater.start(loaded, Moment(1, 0, 0.1))]
        with counted_waits() as waits:
            started += [one.updater.start(loaded, Moment(1, n, 0.1)) for n in (1, 2, 3)]
        assert not waits
        with counted_waits() as waits:
            assert len(one.updater.read(started)) == 4
        assert waits == {"tolist": 1}


def test_a_recurrent_networks_update_does_not_fetch_its_sources_lengths(
    task: Path,
) -> None:
    one = tiny.trainer(task, task / "none")
    for network in (lstm(), rnn(layers=2)):
        updater = Updater(network, one.recipe, seed=1, device="cpu")
        loaded = updater.load(one.train, np.arange(16))
        updater.start(loaded, Moment(1, 0, 0.1))  # sets up
        with counted_waits() as waits:
            updater.start(loaded, Moment(1, 1, 0.1))
        # The sizes of its packed steps, which torch reads, are on the CPU in any case. A GRU reads
        # them as integers.
        assert not waits.keys() & set(READS) - {"__int__"}
