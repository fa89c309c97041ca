"""One update from its rows to its figures."""

from convs2s.data.batches import Indices
from convs2s.data.store import TokenStore
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater, UpdateReport


def make_update(
    updater: Updater, store: TokenStore, rows: Indices, moment: Moment
) -> UpdateReport:
    """Make one update from the pairs ``rows``, wait for it, and return its figures."""
    started = updater.start(updater.load(store, rows), moment)
    (report,) = updater.read([started])
    return report
