"""ConvS2S by ONNX Runtime finds what it finds by torch, whatever else is in the batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from convs2s.data.vocabulary import END, UNKNOWN
from convs2s.decoding.search import beam_search
from convs2s.models import onnx_ensemble as by_onnx
from convs2s.models import onnx_search as search_graph
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.int8_scales import calibrate
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import Weights
from convs2s.models.steps import Average, Precision, Shortlisted
from tests.invariants.hypotheses import assert_alike
from tests.support.networks import TYPES, architecture_of, batch, network, options

NETWORKS: list[dict[str, Any]] = [
    {},
    {"kernels": (1, 1, 1), "vocabulary_selection": {}},
    {"kernels": (1, 2, 1), "attention": (False, True, False)},
    {"positions": {"source": False, "maximum": 30}},
    {"attention": (True, True, False), "attention_weights": "shared"},
]
SEARCHES = [
    options(beam=1),
    options(beam=4, finished="leave", unknown_penalty=2.0),
    options(beam=3, minimum_length=4, maximum_length={"factor": 1, "offset": 1}),
    options(beam=7, maximum_length={"factor": 0, "offset": 40}),
]
LENGTHS = (9, 2, 5, 1, 28)
SOURCE = batch(*LENGTHS)


def soft(seed: int = 0, factor: float = 0.7, **stated: Any) -> ConvS2S:
    """Return a network in float32 that finds no two continuations equally probable."""
    model = network(seed, **stated).float()
    for parameter in model.parameters():
        parameter.data.mul_(factor)
    return model


def onnx(
    models: Sequence[ConvS2S],
    precision: Precision = "fp32",
    average: Average = "probabilities",
    fixed: bool = False,
    **stated: Any,
) -> OnnxEnsemble:
    """Return the ensemble; in int8 with ``fixed`` scales, or else with one for each row."""
    architecture = architecture_of(**stated)
    sizes = TYPES, TYPES
    weights = []
    for model in models:
        arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
        scales = calibrate(arrays, architecture, sizes) if fixed else {}
        assert bool(scales) == fixed
        weights.append(Weights(arrays, architecture, sizes, scales))
    return OnnxEnsemble(weights, precision, average)


def assert_searches(**stated: Any) -> None:
    """Compare what searches find in a batch and alone, and with a shortlist."""
    model = soft(**stated)
    ours, theirs = onnx([model], **stated), Ensemble([model])
    for search in SEARCHES:
        found = beam_search(ours, SOURCE, search)
        assert_alike(found, beam_search(theirs, SOURCE, search), 1e-4)
        for row, length in enumerate(LENGTHS):
            sentence = SOURCE[row : row + 1, : length + 1]
            assert beam_search(ours, sentence, search) == [found[row]]
    types = np.array([*range(END + 3), 7, 9, 12])
    mask = np.zeros((len(LENGTHS), len(types)), bool)
    mask[1, -2] = True
    mask[2, -1] = True
    chosen = SOURCE, options(beam=3), Shortlisted(types, mask)
    assert_alike(beam_search(ours, *chosen), beam_search(theirs, *chosen), 1e-4)


@pytest.mark.parametrize("stated", NETWORKS, ids=str)
def test_searches_find_what_torch_finds_in_a_batch_and_alone(
    stated: dict[str, Any],
) -> None:
    """Alone it is one graph, which knows each setting of a search itself."""
    assert_searches(**stated)


def test_small_groups_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are more than a step looks into, and a batch has parts of a sentence."""
    monkeypatch.setattr(by_onnx, "GROUP", 2)
    monkeypatch.setattr(search_graph, "GROUP", 2)
    monkeypatch.setattr(by_onnx, "PART_NUMBERS", 1)
    monkeypatch.setattr(by_onnx, "PART_ROWS", 1)
    assert_searches()


def test_a_network_without_positions_is_torchs() -> None:
    """Its states repeat themselves in long outputs, of which many are equally probable."""
    stated: dict[str, Any] = {"positions": {"source": False, "target": False}}
    model = soft(**stated)
    ours = onnx([model], **stated)
    assert ours.positions("target") is None
    chosen = SOURCE, SEARCHES[0]
    expected = beam_search(Ensemble([model]), *chosen)
    assert_alike(beam_search(ours, *chosen), expected, 1e-4)


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_an_ensemble_is_torchs(average: Average) -> None:
    models = [soft(seed) for seed in range(3)]
    ours = onnx(models, average=average)
    assert ours.positions("target") == 30
    found = beam_search(ours, SOURCE, options(beam=3))
    expected = beam_search(Ensemble(models, average), SOURCE, options(beam=3))
    assert_alike(found, expected, 1e-4)
    assert beam_search(ours, SOURCE[:1], options(beam=3)) == found[:1]


@pytest.mark.parametrize(
    ("precision", "fixed"), [("fp32", False), ("int8", False), ("int8", True)]
)
@pytest.mark.parametrize("shortlisted", [False, True])
def test_no_output_depends_on_the_batch(
    precision: Precision, fixed: bool, shortlisted: bool
) -> None:
    """To the last bit: the types of other sentences are summed over too, as nothing."""
    stated: dict[str, Any] = {"positions": {"maximum": 200}}
    ensemble = onnx([soft(factor=0.5, **stated)], precision, fixed=fixed, **stated)
    lengths = (3, 16, 30, 60, 70, 90, 130)
    source = batch(*lengths)
    own = np.random.default_rng(1).random((len(lengths), TYPES)) < 0.5
    own[:, : END + 3] = True
    for search in (options(beam=1), options(beam=5)):
        everything = Shortlisted(np.arange(TYPES), ~own) if shortlisted else None
        together = beam_search(ensemble, source, search, everything)
        for row, length in enumerate(lengths):
            types = np.flatnonzero(own[row])
            none = np.zeros((1, len(types)), bool)
            shortlist = Shortlisted(types, none) if shortlisted else None
            sentence = source[row : row + 1, : length + 1]
            assert beam_search(ensemble, sentence, search, shortlist) == [together[row]]


def test_equal_continuations_are_in_the_order_of_hypotheses_and_types(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever types share a group."""
    monkeypatch.setattr(by_onnx, "GROUP", 2)
    monkeypatch.setattr(search_graph, "GROUP", 2)
    model = soft()
    for name in ("weight_g", "bias"):
        model.output.state_dict()[name].zero_()
    for found in beam_search(onnx([model]), SOURCE, options(beam=3)):
        assert [one.tokens for one in found] == [[], [UNKNOWN], [UNKNOWN, UNKNOWN]]
