"""An update is the same however its batch is split, padded, compiled or read before its turn."""

import threading
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.config.architecture import parse_architecture
from convs2s.data.batches import collate
from convs2s.data.vocabulary import PADDING
from convs2s.errors import UserError
from convs2s.models.build import build_network
from convs2s.training.loading import AHEAD, GPU_LENGTHS, ahead
from convs2s.training.schedule import Moment
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from tests.invariants.waiting import READS, counted_waits
from tests.support import tiny
from tests.support.updates import make_update


def updated(
    task: Path, tokens: int | None = 40, multiple: int = 1, **recipe: Any
) -> tuple[Trainer, list[Any]]:
    """Make the updates of an epoch; return their figures."""
    limits = {"sentences": 32, "micro_batch_tokens": tokens}
    one = tiny.trainer(task, task / "none", batch=limits, **recipe)
    one.updater.multiple = multiple
    reports = []
    for number, rows in enumerate(one.plan(1)):
        moment = Moment(1, number, 0.25)
        reports.append(asdict(make_update(one.updater, one.train, rows, moment)))
    return one, reports


@pytest.mark.parametrize(
    ("changes", "plain", "tolerance"),
    [
        ({"tokens": None}, {}, 1e-9),
        ({"multiple": GPU_LENGTHS}, {}, 1e-9),
        pytest.param(
            {"compile": True, "dropout": 0.2},
            {"dropout": 0.2},
            1e-6,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_same_updates(
    task: Path, changes: dict[str, Any], plain: dict[str, Any], tolerance: float
) -> None:
    other, figures = updated(task, **changes)
    one, expected = updated(task, **plain)
    for found, figure in zip(figures, expected, strict=True):
        assert found == pytest.approx(figure)
    for name, parameter in one.network.named_parameters():
        its = other.network.get_parameter(name)
        torch.testing.assert_close(its, parameter, atol=tolerance, rtol=0)
    loss = one.updater.validate(one.valid)
    assert other.updater.validate(other.valid) == pytest.approx(loss, abs=tolerance)
    for _, inputs in other.updater.load(other.train, np.arange(16)).micro_batches:
        for tokens in (inputs.source, inputs.previous):
            assert tokens.shape[1] % other.updater.multiple == 0


@pytest.mark.parametrize("compiled", [False, True])
def test_shapes_are_as_small_as_can_be_on_a_cpu(task: Path, compiled: bool) -> None:
    one = tiny.trainer(task, task / "none", compile=compiled)
    batch = collate(one.train, np.arange(16), multiple=one.updater.multiple)
    assert (batch.source != PADDING).any(0).all()
    assert (batch.target != PADDING).any(0).all()


# ---- what is read before its turn ----


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("loading")]


def test_items_are_loaded_in_a_thread_before_their_turn_and_fail_in_it() -> None:
    taken: list[int] = []

    def load(item: int) -> tuple[int, bool]:
        taken.append(item)
        if item == 7:
            raise UserError("pair 7 is damaged")
        return item, threading.current_thread().name in threads()

    with closing(ahead(load, range(5))) as loaded:
        assert list(loaded) == [(item, True) for item in range(5)]
    taken.clear()
    with closing(ahead(load, range(100))) as loaded:
        next(loaded)
        assert threads()
        assert len(taken) <= 2 + AHEAD
        assert [next(loaded)[0] for _ in range(6)] == [1, 2, 3, 4, 5, 6]
        with pytest.raises(UserError, match="pair 7 is damaged"):
            next(loaded)
    assert not threads()


@pytest.mark.parametrize("step", ["start", "load"])
def test_a_training_that_fails_leaves_no_thread(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    trainer = tiny.trainer(task, tmp_path)
    seen = []

    def fail(*_: Any) -> None:
        seen.extend(threads())
        raise UserError("damaged")

    monkeypatch.setattr(Updater, step, fail)
    with trainer.folder.locked(), pytest.raises(UserError, match="damaged"):
        trainer.run()
    assert seen
    assert not threads()


# ---- what waits for the device ----


@pytest.mark.parametrize("optimizer", ["nesterov", "adam"])
def test_an_update_waits_for_nothing(task: Path, optimizer: str) -> None:
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


@pytest.mark.parametrize("kind", ["lstm", "rnn"])
def test_a_recurrent_networks_update_does_not_fetch_its_sources_lengths(
    task: Path, kind: str
) -> None:
    one = tiny.trainer(task, task / "none")
    stated = {"kind": kind, "layers": 2, "cells": 16, "embedding": 16}
    network = build_network(parse_architecture(stated), 30, 30)
    updater = Updater(network, one.recipe, seed=1, device="cpu")
    loaded = updater.load(one.train, np.arange(16))
    updater.start(loaded, Moment(1, 0, 0.1))  # sets up
    with counted_waits() as waits:
        updater.start(loaded, Moment(1, 1, 0.1))
    # The sizes of its packed steps, which torch reads, are on the CPU in any case. A GRU reads them
    # as integers.
    assert not waits.keys() & set(READS) - {"__int__"}
