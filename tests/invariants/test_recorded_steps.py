"""A search that replays recorded steps finds what one finds that runs them."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END
from convs2s.decoding import translate
from convs2s.decoding.parallel import Stop
from convs2s.decoding.search import beam_search
from convs2s.models import recorded_ensemble
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network
from convs2s.models.recorded_ensemble import SENTENCE_MULTIPLE, RecordedEnsemble
from convs2s.models.steps import Shortlisted
from tests.invariants.recordings import Recorder
from tests.invariants.waiting import counted_waits
from tests.support.networks import assert_alike, batch, lstm, network, options

NOWHERE = {"source": False, "target": False}
SEVERAL = [
    network(1),
    network(2, attention=[2, 3]),
    network(3, kernels=(2, 3, 1), positions=NOWHERE),
]
CHOSEN = np.array([*range(END + 3), 7, 9, 12])


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(
    ("networks", "is_shortlisted", "recordings"),
    [
        # In vectors of 16: (4,) to (15, 15) have one length. A sentence alone stays so.
        (SEVERAL, False, 3),
        ([network(), lstm()], False, 0),
        ([network()], True, 0),
    ],
    ids=["several", "lstm", "shortlist"],
)
def test_it_finds_the_same_and_uses_recordings_again(
    networks: list[Network], is_shortlisted: bool, recordings: int, beam: int
) -> None:
    recorder = Recorder()
    recorded = RecordedEnsemble(networks, recording=recorder)
    for lengths in ((4,), (9, 2), (5,) * SENTENCE_MULTIPLE, (20, 3), (15, 15), (7,)):
        shortlist = Shortlisted(CHOSEN, np.zeros((len(lengths), len(CHOSEN)), bool))
        given = (
            batch(*lengths),
            options(beam=beam),
            shortlist if is_shortlisted else None,
        )
        expected = beam_search(Ensemble(networks), *given)
        assert_alike(beam_search(recorded, *given), expected)
    assert len(recorder.made) == recordings


def test_the_recording_that_is_idle_for_longest_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorded_ensemble, "MOST_RECORDINGS", 2)
    recorded = RecordedEnsemble([network()], recording=Recorder())
    # Two decoders of one shape are out at once. The second comes back last.
    first = recorded.start(batch(4), 1)
    second = recorded.start(batch(4), 1)
    first.release()
    beam_search(recorded, batch(20), options(beam=1))
    second.release()
    beam_search(recorded, batch(40), options(beam=1))
    assert list(recorded._idle) == [(1, 16, 1), (1, 48, 1)]


def test_a_gpu_records_unless_it_is_told_not_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(translate, "load_model", lambda *_: (network(), Mock()))
    for is_recorded, kind in ((True, RecordedEnsemble), (False, Ensemble)):
        settings = DecodingSettings(cuda_graphs=is_recorded)
        ensemble, _ = translate.load_ensemble([Path("model")], "cuda", settings)
        assert type(ensemble) is kind


def test_a_batch_that_nobody_waits_for_leaves_its_recording_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder()
    recorded = RecordedEnsemble([network()], recording=recorder)
    given = batch(6, 3), options()
    steps = iter(range(4))
    stopped = Stop()
    monkeypatch.setattr(stopped, "is_set", lambda: next(steps) == 3)
    beam_search(recorded, *given, stopped=stopped)
    expected = beam_search(Ensemble([network()]), *given)
    with counted_waits() as waits:
        found = beam_search(recorded, *given)
    assert_alike(found, expected)
    (recording,) = recorder.made
    # Before it was stopped, the first step ran and two were replayed.
    assert waits == {"cpu": recording.replays - 2}
