"""A translation is the same in any batch, on any threads, step by step, at once or replayed."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from convs2s.config.architecture import parse_architecture
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import export_extensions
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding import translate
from convs2s.decoding.parallel import Stop, search_in_threads
from convs2s.decoding.rescoring import log_probabilities
from convs2s.decoding.search import beam_search
from convs2s.decoding.translate import LineTranslator, Translation
from convs2s.models import recorded_ensemble
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble, for_inference
from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.network import Network
from convs2s.models.recorded_ensemble import SENTENCE_MULTIPLE, RecordedEnsemble
from convs2s.models.steps import Average, Precision, Shortlisted
from tests.invariants.gpu import Recorder, counted_waits
from tests.support import tiny
from tests.support.networks import (
    TYPES,
    assert_alike,
    batch,
    lstm,
    network,
    options,
    rnn,
)

READ = batch(6, 6, 6).roll(1, 1)
"""What the decoder reads: ``</s>`` and tokens."""
CONVS2S = [
    network(),
    network(attention=[1, 3]),
    network(4, kernels=(2, 3), positions={"target": False}, vocabulary_selection={}),
]
RECURRENT = [lstm(), rnn(), rnn("lstm", "luong", layers=2)]

# ---- what else is translated ----


@pytest.mark.parametrize(
    ("precision", "beam"), [("fp32", 2), ("bf16", 2), ("int8", 2), ("fp32", 48)]
)
def test_nothing_beside_a_line_changes_its_translation(
    sharp: Path, monkeypatch: pytest.MonkeyPatch, precision: str, beam: int
) -> None:
    """Also with a beam that is wider than the vocabulary; to the last bit but in fp32."""
    generator = random.Random(5)
    lengths = [*range(0, 40, 2)] * 2
    lines = [" ".join(generator.choices(tiny.WORDS, k=length)) for length in lengths]
    short = {"factor": 0.2, "offset": 2}

    def translated(
        order: Sequence[int], threads: int = 1, **changes: int
    ) -> list[Translation]:
        settings = options(
            beam=beam, precision=precision, maximum_length=short, **changes
        )
        translator = LineTranslator([sharp], settings, "cpu", threads=threads)
        found = translator.translate(lines[place] for place in order)
        return [one for _, one in sorted(zip(order, found, strict=True))]

    places = range(len(lines))
    shuffled = generator.sample(places, len(places))
    expected = translated(places, batch_sentences=64)
    assert expected[0].text == ""
    assert len({one.text for one in expected}) > 15
    compared = [
        translated(shuffled, batch_sentences=1),
        translated(shuffled, batch_sentences=7),
        translated(places, batch_tokens=90),
        translated(places, batch_sentences=9, threads=3),
    ]
    monkeypatch.setattr("convs2s.decoding.translate.LINES_PER_CHUNK", 9)
    compared.append(translated(shuffled))
    tolerance = 1e-5 if precision == "fp32" else 0
    for found in compared:
        for one, other in zip(found, expected, strict=True):
            assert (one.text, one.alignment) == (other.text, other.alignment)
            assert abs(one.score - other.score) <= tolerance


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("model", RECURRENT)
def test_a_recurrent_networks_sentence_is_the_same_to_the_bit_in_every_batch(
    model: Network, precision: Precision
) -> None:
    """Rows of one length alone, and rows that outlast all others, take other kernels of torch."""
    decoding = for_inference(deepcopy(model).float().eval(), precision)
    lengths = [3, 9, 9, 17, 30]
    source = batch(*lengths)

    @torch.inference_mode()
    def features(chosen: list[int], hypotheses: int) -> torch.Tensor:
        rows = source[chosen, : max(lengths[one] for one in chosen) + 1]
        state = decoding.start(rows, hypotheses)
        state.step(torch.full((len(chosen), hypotheses), END))
        return state.step(torch.full((len(chosen), hypotheses), 4))[0]

    for count in (1, 4):
        together = features([0, 1, 2, 3, 4], count)
        for chosen in ([0], [4], [1, 2], [3, 4], [0, 4], [2, 0, 3]):
            assert torch.equal(features(chosen, count), together[chosen])


# Longer sums in bf16 are split by the number of rows where a processor has matrix units (AMX).
@pytest.mark.parametrize("shape", [(40, 24), (2, 3), (1400, 256), (256, 768)])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-6), ("bf16", 0.02)])
def test_linear_maps_are_near_torchs_row_by_row(
    precision: Precision, tolerance: float, shape: tuple[int, int]
) -> None:
    torch.manual_seed(1)
    outputs, inputs = shape
    x, weight, bias = torch.randn(40, inputs), torch.randn(shape), torch.randn(outputs)
    multiply = LinearMap(weight, bias, precision)
    together = multiply(x)
    # What rounding may do: a share of the product of the norms.
    error = (together.float() - functional.linear(x, weight, bias)).abs().max()
    assert error < tolerance * inputs
    for last in (4, 5, 6, 7, 8, 20, 40):
        assert torch.equal(multiply(x[3:last]), together[3:last])


# ---- step by step or at once ----


@torch.no_grad()
@pytest.mark.parametrize("finished", ["replace", "leave"])
@pytest.mark.parametrize("model", [network(), *RECURRENT])
def test_a_score_is_the_likelihood_by_a_full_pass(
    model: Network, finished: str
) -> None:
    """That of a search in a batch, and that of its output as a given translation."""
    ensemble = Ensemble([model.eval()])
    chosen = options(length_penalty=0.6, finished=finished)
    batched = beam_search(ensemble, batch(7, 3), chosen)
    for row, hypotheses in zip(batch(7, 3), batched, strict=True):
        alone = row[row != PADDING].unsqueeze(0)
        for one in hypotheses:
            target = torch.tensor([[*one.tokens, END]])
            logits, _ = model(alone, target.roll(1, 1))
            steps = logits.log_softmax(2).gather(2, target.unsqueeze(2))
            total = float(steps.sum())
            assert one.score == pytest.approx(total / target.numel() ** 0.6, abs=1e-5)
            given = log_probabilities(ensemble, alone, target.unsqueeze(0))
            assert float(given) == pytest.approx(total, abs=1e-9)


@torch.inference_mode()
def test_each_step_is_that_of_the_full_pass(root: Path) -> None:
    """Log-probabilities and mean attention, also of rows that have moved.

    The first hypothesis of each sentence becomes the second, and later a sentence is dropped.
    """
    source = batch(9, 2, 5)
    export_extensions(["examples/transformer.py"], root)
    settings = {"kind": "transformer", "layers": 2, "width": 32, "heads": 4}
    example = build_network(parse_architecture(settings), TYPES, TYPES).double()
    others = [rnn("lstm"), rnn(attention="luong"), example]
    for model in (*CONVS2S, *RECURRENT, *others):
        logits, attentions = model.eval()(source, READ)
        expected = logits.log_softmax(2)
        state = Ensemble([model]).start(source, 2)
        rows, place = [0, 1, 2], 0
        for position in range(READ.shape[1]):
            read = READ[rows, position].unsqueeze(1).repeat(1, 2)
            read[:, 1 - place] = 9  # the other hypothesis says something else
            found, attention = state.step(read)
            now = expected[rows, position]
            assert_close(found[:, place], now, atol=1e-9, rtol=0)
            assert (attention is not None) == bool(attentions) == model.attends
            if attention is not None:
                mean = torch.stack(attentions).mean(0)[rows, position]
                assert_close(attention[:, place], mean, atol=1e-9, rtol=0)
            if position == 1:
                state.select(np.array([1, 0, 3, 2, 5, 4]))
                place = 1
            if position == 4:
                state.keep(np.array([0, 2]))
                rows = [0, 2]


# ---- several networks ----


@torch.no_grad()
def test_what_an_ensemble_averages() -> None:
    """Attention, too, of those that attend: the LSTM has none."""
    networks = [network(0), network(1), lstm()]

    def step(average: Average, *chosen: Network) -> Any:
        state = Ensemble(chosen, average).start(batch(5, 8), 1)
        return state.step(torch.full((2, 1), END))

    alone = [step("probabilities", one) for one in networks]
    predictions, (*attended, none) = zip(*alone, strict=True)
    assert none is None
    each = torch.stack(predictions)
    mean = torch.stack(attended).mean(0)
    means: dict[Average, torch.Tensor] = {
        "probabilities": each.exp().mean(0).log(),
        "log_probabilities": each.mean(0),
    }
    for average, expected in means.items():
        found = step(average, *networks)
        assert_close(found, (expected, mean), atol=1e-9, rtol=0)


def test_an_ensemble_has_the_positions_that_each_of_its_networks_has() -> None:
    together = Ensemble([network(), network(positions={"maximum": 16}), lstm()])
    assert [together.positions(side) for side in ("source", "target")] == [16, 16]
    assert Ensemble([lstm()]).positions("target") is None


# ---- batches side by side ----


def test_threads_compute_alone() -> None:
    """Then the program has its threads again, for itself and for threads that it starts."""

    def threads(*_: object) -> int:
        return torch.get_num_threads()

    torch.set_num_threads(2)
    for batches in (1, 8):
        assert search_in_threads(threads, range(batches), threads=3) == [1] * batches
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(threads).result() == threads() == 2


def test_a_failure_stops_the_other_batches() -> None:
    begun = Event()
    ended = []

    def search(number: int, stopped: Event) -> None:
        if number == 1:
            begun.wait(60)
            raise KeyError(number)
        begun.set()
        ended.append(stopped.wait(60))

    with pytest.raises(KeyError):
        search_in_threads(search, range(2), threads=2)
    assert ended == [True]


# ---- recorded steps, replayed ----

NOWHERE = {"source": False, "target": False}
SEVERAL = [
    network(1),
    network(2, attention=[2, 3]),
    network(3, kernels=(2, 3, 1), positions=NOWHERE),
]
CHOSEN = np.array([*range(END + 3), 7, 9, 12])
BATCHES = (4,), (9, 2), (5,) * SENTENCE_MULTIPLE, (20, 3), (15, 15), (7,)


@pytest.mark.parametrize("beam", [1, 3])
def test_it_finds_the_same_and_uses_recordings_again(beam: int) -> None:
    for networks, is_shortlisted, recordings in (
        # In vectors of 16: (4,) to (15, 15) have one length. A sentence alone stays so.
        (SEVERAL, False, 3),
        ([network(), lstm()], False, 0),
        ([network()], True, 0),
    ):
        recorder = Recorder()
        recorded = RecordedEnsemble(networks, recording=recorder)
        for lengths in BATCHES:
            none = np.zeros((len(lengths), len(CHOSEN)), bool)
            shortlist = Shortlisted(CHOSEN, none) if is_shortlisted else None
            given = batch(*lengths), options(beam=beam), shortlist
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
