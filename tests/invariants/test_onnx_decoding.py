"""ConvS2S by ONNX Runtime finds what it finds by torch, whatever else is in the batch."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from convs2s.data.vocabulary import END
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.models import onnx_ensemble as by_onnx
from convs2s.models import onnx_search as search_graph
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.int8_scales import calibrate
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import OutputMap, Weights
from convs2s.models.steps import Average, Precision, Shortlisted
from tests.support.networks import TYPES, architecture_of, batch, network, options

NETWORKS: list[dict[str, Any]] = [
    {},
    {"kernels": (1, 1, 1)},
    {"kernels": (1, 2, 1), "attention": (False, True, False)},
    {"positions": {"source": False, "maximum": 30}},
    {"attention": (True, True, False), "attention_weights": "shared"},
    {"vocabulary_selection": {}},
]
SEARCHES: list[dict[str, Any]] = [
    {"beam": 1},
    {"beam": 4, "finished": "leave", "unknown_penalty": 2.0},
    {"beam": 3, "minimum_length": 4, "maximum_length": {"factor": 1, "offset": 1}},
    {"beam": 7, "maximum_length": {"factor": 0, "offset": 40}},
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
    weights = []
    for model in models:
        arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
        sizes = TYPES, TYPES
        architecture = architecture_of(**stated)
        scales = calibrate(arrays, architecture, sizes) if fixed else {}
        assert bool(scales) == fixed
        weights.append(Weights(arrays, architecture, sizes, scales))
    return OnnxEnsemble(weights, precision, average)


def assert_alike(
    found: list[list[Hypothesis]], expected: list[list[Hypothesis]]
) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        for mine, one in zip(ours, theirs, strict=True):
            assert (mine.tokens, mine.alignment) == (one.tokens, one.alignment)
            assert mine.score == pytest.approx(one.score, 1e-4)


@pytest.fixture(scope="module", params=[*NETWORKS, "small groups"], ids=str)
def both(request: pytest.FixtureRequest) -> Iterator[tuple[OnnxEnsemble, Ensemble]]:
    """A network by ONNX Runtime and by torch; no search changes it.

    Small groups of types are more than a step looks into, and a batch has parts of a sentence.
    """
    with pytest.MonkeyPatch.context() as patch:
        stated = request.param
        if stated == "small groups":
            stated = {}
            patch.setattr(by_onnx, "GROUP", 2)
            patch.setattr(search_graph, "GROUP", 2)
            patch.setattr(by_onnx, "PART_NUMBERS", 1)
            patch.setattr(by_onnx, "PART_ROWS", 1)
        model = soft(**stated)
        yield onnx([model], **stated), Ensemble([model])


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_a_search_finds_what_torch_finds_in_a_batch_and_alone(
    both: tuple[OnnxEnsemble, Ensemble], search: dict[str, Any]
) -> None:
    """Alone it is one graph, which knows each setting of a search itself."""
    ours, theirs = both
    found = beam_search(ours, SOURCE, options(**search))
    assert_alike(found, beam_search(theirs, SOURCE, options(**search)))
    for row, length in enumerate(LENGTHS):
        sentence = SOURCE[row : row + 1, : length + 1]
        assert beam_search(ours, sentence, options(**search)) == [found[row]]


def test_a_shortlist_is_torchs(both: tuple[OnnxEnsemble, Ensemble]) -> None:
    types = np.array([*range(END + 3), 7, 9, 12])
    mask = np.zeros((len(LENGTHS), len(types)), bool)
    mask[1, -2] = True
    mask[2, -1] = True
    chosen = SOURCE, options(beam=3), Shortlisted(types, mask)
    assert_alike(beam_search(both[0], *chosen), beam_search(both[1], *chosen))


def test_a_network_without_positions_is_torchs() -> None:
    """Its states repeat themselves in long outputs, of which many are equally probable."""
    stated: dict[str, Any] = {"positions": {"source": False, "target": False}}
    model = soft(**stated)
    expected = beam_search(Ensemble([model]), SOURCE, options(beam=1))
    ours = onnx([model], **stated)
    assert ours.positions("target") is None
    assert_alike(beam_search(ours, SOURCE, options(beam=1)), expected)


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_an_ensemble_is_torchs(average: Average) -> None:
    models = [soft(seed) for seed in range(3)]
    ours = onnx(models, average=average)
    assert ours.positions("target") == 30
    found = beam_search(ours, SOURCE, options(beam=3))
    assert_alike(found, beam_search(Ensemble(models, average), SOURCE, options(beam=3)))
    assert beam_search(ours, SOURCE[:1], options(beam=3)) == found[:1]


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize(
    ("precision", "fixed"), [("fp32", False), ("int8", False), ("int8", True)]
)
@pytest.mark.parametrize("shortlisted", [False, True])
def test_no_output_depends_on_the_batch(
    precision: Precision, fixed: bool, beam: int, shortlisted: bool
) -> None:
    """To the last bit: the types of other sentences are summed over too, as nothing."""
    stated: dict[str, Any] = {"positions": {"maximum": 200}}
    ensemble = onnx([soft(factor=0.5, **stated)], precision, fixed=fixed, **stated)
    lengths = (3, 16, 30, 60, 70, 90, 130)
    source = batch(*lengths)
    everything = np.arange(TYPES)
    mask = np.random.default_rng(1).random((len(lengths), TYPES)) < 0.5
    mask[:, : END + 3] = False
    shortlist = Shortlisted(everything, mask) if shortlisted else None
    together = beam_search(ensemble, source, options(beam=beam), shortlist)
    for row, length in enumerate(lengths):
        if shortlisted:
            own = everything[~mask[row]]
            shortlist = Shortlisted(own, np.zeros((1, len(own)), bool))
        sentence = source[row : row + 1, : length + 1]
        alone = beam_search(ensemble, sentence, options(beam=beam), shortlist)
        assert alone == [together[row]]


def test_equal_continuations_are_in_the_order_of_hypotheses_and_types() -> None:
    bias = np.zeros(100, np.float32)
    bias[[5, 40, 41, 70]] = [1, 1, 2, 1]
    layer = OutputMap(np.zeros((100, 8), np.float32), bias)
    graph = search_graph.continuations([layer], "fp32", "probabilities", np.arange(100))
    given = search_graph.search_inputs(
        types=100, hypotheses=2, candidates=8, unknown_penalty=0
    )
    given["0.features"] = np.ones((1, 2, 8), np.float32)
    given["scores"] = np.zeros((1, 2), np.float32)
    given["limits"] = np.zeros(1, np.int64)
    parents, chosen = graph.session().run(["parents", "chosen"], given)
    assert parents.tolist() == [[0, 1, 0, 0, 0, 1, 1, 1]]
    assert chosen.tolist() == [[41, 41, 5, 40, 70, 5, 40, 70]]
