"""A training does not wait for its device: what updates did is read now and then."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.training.loading import LoadedUpdate
from convs2s.training.schedule import Moment
from convs2s.training.trainer import Trainer
from tests.support import tiny
from tests.support.waiting import counted_waits


def loaded(one: Trainer) -> LoadedUpdate:
    return one.updater.load(one.train, np.arange(16))


@pytest.mark.parametrize("optimizer", ["nesterov", "adam"])
def test_an_update_waits_for_nothing(tmp_path: Path, optimizer: str) -> None:
    task = tiny.prepare(tmp_path / "task")
    one = tiny.trainer(task, tmp_path / "run", dropout=0.2, optimizer=optimizer)
    started = [one.updater.start(loaded(one), Moment(1, 0, 0.1))]  # the first one sets up
    with counted_waits() as waits:
        started += [one.updater.start(loaded(one), Moment(1, n, 0.1)) for n in range(1, 4)]
    assert not waits
    with counted_waits() as waits:
        reports = one.updater.read(started)
    assert waits == {"tolist": 1}
    assert len(reports) == 4
