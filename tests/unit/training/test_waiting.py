"""A training does not wait for its device: what updates did is read now and then."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.config.architecture import parse_architecture
from convs2s.models.build import build_network
from convs2s.training.loading import LoadedUpdate
from convs2s.training.schedule import Moment
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.waiting import READS, counted_waits


def loaded(one: Trainer) -> LoadedUpdate:
    return one.updater.load(one.train, np.arange(16))


@pytest.mark.parametrize("optimizer", ["nesterov", "adam"])
def test_an_update_waits_for_nothing(
    task: Path, tmp_path: Path, optimizer: str
) -> None:
    one = tiny.trainer(task, tmp_path, dropout=0.2, optimizer=optimizer)
    # The first one sets up.
    started = [one.updater.start(loaded(one), Moment(1, 0, 0.1))]
    with counted_waits() as waits:
        started += [
            one.updater.start(loaded(one), Moment(1, n, 0.1)) for n in range(1, 4)
        ]
    assert not waits
    with counted_waits() as waits:
        reports = one.updater.read(started)
    assert waits == {"tolist": 1}
    assert len(reports) == 4


def test_an_lstms_update_does_not_fetch_its_sources_lengths(
    task: Path, tmp_path: Path
) -> None:
    one = tiny.trainer(task, tmp_path)
    stated = {"kind": "lstm", "layers": 2, "cells": 16, "embedding": 16}
    network = build_network(parse_architecture(stated), 30, 30)
    updater = Updater(network, one.recipe, seed=1, device="cpu")
    updates = [updater.load(one.train, np.arange(16)) for _ in range(2)]
    updater.start(updates[0], Moment(1, 0, 0.1))  # sets up
    with counted_waits() as waits:
        updater.start(updates[1], Moment(1, 1, 0.1))
    # The sizes of its packed steps, which torch reads, are on the CPU in any case.
    assert not waits.keys() & set(READS)
