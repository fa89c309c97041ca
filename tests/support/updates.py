"""One update from its rows to its figures, and a device whose memory is short."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from torch import Tensor

from convs2s.data.batches import Indices
from convs2s.data.store import TokenStore
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater, UpdateReport


@contextmanager
def short_of_memory(*fits: bool) -> Iterator[None]:
    """Say of the first micro-batches in the block whether they fit into memory; all others do."""
    left = iter(fits)
    add = Updater._add_gradient

    def added(updater: Updater, *arguments: Any) -> Tensor | None:
        return add(updater, *arguments) if next(left, True) else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "_add_gradient", added)
        yield
    assert not list(left)


def make_update(
    updater: Updater, store: TokenStore, rows: Indices, moment: Moment
) -> UpdateReport:
    """Make one update from the pairs ``rows``, wait for it, and return its figures."""
    started = updater.start(updater.load(store, rows), moment)
    (report,) = updater.read([started])
    return report
