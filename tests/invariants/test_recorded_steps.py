"""A search that replays recorded steps finds what one finds that runs them."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END
from convs2s.decoding import translate
from convs2s.decoding.parallel import Stop
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.models import recorded_ensemble
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network
from convs2s.models.recorded_ensemble import (
    SENTENCE_MULTIPLE,
    RecordedEnsemble,
)
from convs2s.models.steps import Shortlisted
from tests.invariants.recordings import CpuRecording
from tests.invariants.waiting import counted_waits
from tests.support.networks import TYPES, batch, convs2s, lstm, network, options


class Recorded(RecordedEnsemble):
    """An ensemble that knows the recordings it has made."""

    def __init__(self, *networks: Network) -> None:
        self.made: list[CpuRecording] = []
        super().__init__(networks, recording=self.new)

    def new(self) -> CpuRecording:
        self.made.append(CpuRecording())
        return self.made[-1]


def assert_alike(
    found: list[list[Hypothesis]], expected: list[list[Hypothesis]]
) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert [(one.tokens, one.alignment) for one in ours] == [
            (one.tokens, one.alignment) for one in theirs
        ]
        assert [one.score for one in ours] == pytest.approx(
            [one.score for one in theirs], abs=1e-9
        )


def several() -> list[Network]:
    """Networks with attention in other layers, one of them without positions."""
    nowhere = {"source": False, "target": False}
    without = convs2s(((8, 3),), ((8, 3), (8, 2)), attention=[2], positions=nowhere)
    torch.manual_seed(1)
    last = ConvS2S(without, TYPES, TYPES).double()
    return [network(1), network(2, attention=(False, True, True)), last]


CHOSEN = np.array([*range(END + 3), 7, 9, 12])
SHORTLIST = Shortlisted(CHOSEN, np.zeros((2, len(CHOSEN)), bool))


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(
    ("networks", "shortlist", "recordings"),
    [
        (several(), None, 1),
        ([network(), lstm()], None, 0),
        ([network()], SHORTLIST, 0),
    ],
    ids=["several", "lstm", "shortlist"],
)
def test_it_finds_the_same(
    networks: list[Network], shortlist: Shortlisted | None, recordings: int, beam: int
) -> None:
    recorded = Recorded(*networks)
    for source in (batch(9, 2), batch(6, 6)):
        given = (source, options(beam=beam), shortlist)
        assert_alike(
            beam_search(recorded, *given), beam_search(Ensemble(networks), *given)
        )
    assert len(recorded.made) == recordings


def test_a_recording_is_used_again_for_batches_of_its_shape() -> None:
    recorded = Recorded(network())
    shapes = ((4,), (9, 2), (5,) * SENTENCE_MULTIPLE, (20, 3), (15, 15))
    # In vectors of 16: (4,) to (15, 15) have one length. A sentence alone stays so.
    for lengths in shapes + shapes:
        beam_search(recorded, batch(*lengths), options(beam=2))
    assert len(recorded.made) == 3


def test_the_recording_that_is_idle_for_longest_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorded_ensemble, "MOST_RECORDINGS", 2)
    recorded = Recorded(network())
    # Two decoders of one shape are out at once. The second comes back last.
    first = recorded.start(batch(4), 1)
    second = recorded.start(batch(4), 1)
    first.release()
    beam_search(recorded, batch(20), options(beam=1))
    second.release()
    beam_search(recorded, batch(40), options(beam=1))
    assert list(recorded._idle) == [(1, 16, 1), (1, 48, 1)]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_sentence_alone_is_not_filled_up(beam: int) -> None:
    model = network()
    recorded = Recorded(model)
    for length in (5, 7):
        given = (batch(length), options(beam=beam))
        assert_alike(
            beam_search(recorded, *given), beam_search(Ensemble([model]), *given)
        )
    assert list(recorded._idle) == [(1, 16, beam)]


def test_a_gpu_records_unless_it_is_told_not_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = network(), Mock()
    monkeypatch.setattr(translate, "load_model", lambda path, device: loaded)
    kinds = []
    for settings in (DecodingSettings(), DecodingSettings(cuda_graphs=False)):
        ensemble, _ = translate.load_ensemble([Path("model")], "cuda", settings)
        kinds.append(type(ensemble))
    assert kinds == [RecordedEnsemble, Ensemble]


def test_a_batch_that_nobody_waits_for_leaves_its_recording_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = network()
    recorded = Recorded(model)
    source = batch(6, 3)
    steps = iter(range(4))
    stopped = Stop()
    monkeypatch.setattr(stopped, "is_set", lambda: next(steps) == 3)
    beam_search(recorded, source, options(), stopped=stopped)
    with counted_waits() as waits:
        found = beam_search(recorded, source, options())
    assert_alike(found, beam_search(Ensemble([model]), source, options()))
    (recording,) = recorded.made
    # Before it was stopped, the first step ran and two were replayed.
    assert waits == {"cpu": recording.replays - 2}
