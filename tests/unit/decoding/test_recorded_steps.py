"""A search that replays recorded steps finds what one finds that runs them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.decoding.translate import load_ensemble
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network
from convs2s.models.recorded_ensemble import (
    MOST_RECORDINGS,
    SENTENCE_MULTIPLE,
    RecordedEnsemble,
)
from convs2s.models.steps import Shortlisted
from tests.support.networks import TYPES, batch, convs2s, lstm, network, options
from tests.support.recordings import CpuRecording
from tests.support.waiting import counted_waits
from tests.unit.decoding.test_plain_search import (
    LENGTHS,
    NETWORKS,
    SWITCHES,
    biased,
    settings,
)

NOWHERE = {"source": False, "target": False}


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
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert [(one.tokens, one.alignment) for one in ours] == [
            (one.tokens, one.alignment) for one in theirs
        ]
        assert [one.score for one in ours] == pytest.approx(
            [one.score for one in theirs], abs=1e-9
        )


SEARCHES = [
    *(
        (switch, model)
        for switch in SWITCHES
        for model in ("fond of unknown words", "short")
    ),
    *(("the paper's beam", model) for model in ("as drawn", "fond of padding")),
]
"""Most switches are of the search, outside of a recording: not each with all of the networks."""


@pytest.mark.parametrize(("switch", "model"), SEARCHES)
def test_it_finds_the_same(switch: str, model: str) -> None:
    made, chosen = biased(**NETWORKS[model]), settings(switch)
    recorded = Recorded(made)
    for source in (batch(*LENGTHS), batch(*reversed(LENGTHS))):
        assert_alike(
            beam_search(recorded, source, chosen),
            beam_search(Ensemble([made]), source, chosen),
        )
    (recording,) = recorded.made
    assert recording.replays > 4


@pytest.mark.parametrize("beam", [1, 3])
def test_so_do_several_networks_with_other_attention(beam: int) -> None:
    without = convs2s(((8, 3),), ((8, 3), (8, 2)), attention=[2], positions=NOWHERE)
    torch.manual_seed(1)
    models = [network(1), network(2, attention=(False, True, True))]
    models.append(ConvS2S(without, TYPES, TYPES).double())
    recorded = Recorded(*models)
    for source in (batch(9, 2, 5), batch(6, 6)):
        assert_alike(
            beam_search(recorded, source, options(beam=beam)),
            beam_search(Ensemble(models), source, options(beam=beam)),
        )
    assert len(recorded.made) == 1


def test_a_recording_is_used_again_for_batches_of_its_shape() -> None:
    recorded = Recorded(network())
    shapes = ((4,), (9, 2), (5,) * SENTENCE_MULTIPLE, (20, 3), (15, 15))
    # In vectors of 16: (4,) to (15, 15) have one length.
    for lengths in shapes + shapes:
        beam_search(recorded, batch(*lengths), options(beam=2))
    assert len(recorded.made) == 2
    for beam in range(1, MOST_RECORDINGS + 3):
        beam_search(recorded, batch(4), options(beam=beam))
    assert len(recorded._idle) == MOST_RECORDINGS


def test_a_batch_that_nobody_waits_for_leaves_its_recording_to_the_next() -> None:
    model = network()
    recorded, source = Recorded(model), batch(6, 3)
    steps = iter(range(4))
    beam_search(recorded, source, options(), is_stopped=lambda: next(steps) == 3)
    found = beam_search(recorded, source, options())
    assert_alike(found, beam_search(Ensemble([model]), source, options()))
    assert len(recorded.made) == 1


def test_a_shortlist_is_of_its_batch_and_recorded_by_nobody() -> None:
    model, source = network(), batch(6, 3)
    types = np.array([*range(END + 3), 7, 9, 12])
    shortlist = Shortlisted(types, np.zeros((2, len(types)), bool))
    recorded = Recorded(model)
    found = beam_search(recorded, source, options(), shortlist)
    assert_alike(found, beam_search(Ensemble([model]), source, options(), shortlist))
    assert recorded.made == []


def test_a_step_waits_once() -> None:
    recorded, source = Recorded(network()), batch(6, 3)
    with counted_waits() as waits:
        beam_search(recorded, source, options(beam=3))
    assert waits == {"cpu": recorded.made[0].replays + 1}  # the first step


def test_an_lstms_steps_are_not_recorded() -> None:
    networks, source = (network(), lstm()), batch(6, 3)
    recorded = Recorded(*networks)
    found = beam_search(recorded, source, options())
    assert_alike(found, beam_search(Ensemble(networks), source, options()))
    assert recorded.made == []


def test_a_cpu_runs_its_steps(model: Path) -> None:
    ensemble, _ = load_ensemble([model], "cpu", DecodingSettings(cuda_graphs=True))
    assert type(ensemble) is Ensemble
