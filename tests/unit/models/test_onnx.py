"""ConvS2S by ONNX Runtime finds what it finds by torch, whatever else is in the batch."""

from typing import Any

import numpy as np
import pytest

from convs2s.data.vocabulary import END
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.models import onnx_ensemble as by_onnx
from convs2s.models import onnx_search as search_graph
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import Weights
from convs2s.models.steps import Average, Precision, Shortlisted
from tests.support.kernels import onnx_ensemble
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
    {"beam": 4},
    {"beam": 4, "finished": "leave", "unknown_penalty": 2.0},
    {"beam": 3, "minimum_length": 4, "maximum_length": {"factor": 1, "offset": 1}},
    {"beam": 7, "maximum_length": {"factor": 0, "offset": 40}},
]


def soft(seed: int = 0, **stated: Any) -> ConvS2S:
    """Return a network in float32 that finds no two continuations equally probable."""
    model = network(seed, **stated).float()
    for parameter in model.parameters():
        parameter.data.mul_(0.7)
    return model


def assert_alike(
    found: list[list[Hypothesis]], expected: list[list[Hypothesis]]
) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.alignment for one in ours] == [one.alignment for one in theirs]
        assert [one.score for one in ours] == pytest.approx(
            [one.score for one in theirs], 1e-4
        )


@pytest.fixture(scope="module", params=NETWORKS, ids=str)
def both(request: pytest.FixtureRequest) -> tuple[OnnxEnsemble, Ensemble]:
    """A network by ONNX Runtime and by torch; no search changes it."""
    model = soft(**request.param)
    return onnx_ensemble([model], architecture_of(**request.param)), Ensemble([model])


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_fp32_is_torchs(
    both: tuple[OnnxEnsemble, Ensemble], search: dict[str, Any]
) -> None:
    source = batch(9, 2, 5, 1, 28)
    found, expected = (beam_search(one, source, options(**search)) for one in both)
    assert_alike(found, expected)


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_a_sentence_alone_is_that_of_a_batch(
    both: tuple[OnnxEnsemble, Ensemble], search: dict[str, Any]
) -> None:
    """Alone it is searched for by one graph, which knows each setting of a search itself."""
    lengths = (9, 2, 5, 1, 28)
    ours, source = both[0], batch(*lengths)
    together = beam_search(ours, source, options(**search))
    for row, length in enumerate(lengths):
        alone = beam_search(
            ours, source[row : row + 1, : length + 1], options(**search)
        )
        assert alone == [together[row]]


def test_a_network_without_positions_is_torchs() -> None:
    """Its states repeat themselves in long outputs, of which many are equally probable."""
    stated: dict[str, Any] = {"positions": {"source": False, "target": False}}
    model, source, search = soft(**stated), batch(9, 2, 5), options(beam=1)
    ours = onnx_ensemble([model], architecture_of(**stated))
    assert ours.positions("target") is None
    expected = beam_search(Ensemble([model]), source, search)
    assert_alike(beam_search(ours, source, search), expected)


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_an_ensemble_is_torchs(average: Average) -> None:
    models, source = [soft(seed) for seed in range(3)], batch(9, 2, 5)
    ours = onnx_ensemble(models, architecture_of(), average=average)
    assert ours.positions("target") == 30
    expected = beam_search(Ensemble(models, average), source, options(beam=3))
    found = beam_search(ours, source, options(beam=3))
    assert_alike(found, expected)
    assert beam_search(ours, source[:1], options(beam=3)) == found[:1]


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have more groups of types than a step looks into, and parts of a batch of one sentence."""
    for module in (by_onnx, search_graph):
        monkeypatch.setattr(module, "GROUP", 2)
    monkeypatch.setattr(by_onnx, "PART_NUMBERS", 1)
    monkeypatch.setattr(by_onnx, "PART_ROWS", 1)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_groups_hold_the_best_types(search: dict[str, Any]) -> None:
    model, source = soft(), batch(9, 2, 5)
    expected = beam_search(Ensemble([model]), source, options(**search))
    ours = onnx_ensemble([model], architecture_of())
    assert_alike(beam_search(ours, source, options(**search)), expected)


@pytest.mark.parametrize("fixture", [None, "small_groups"])
def test_a_shortlist_is_torchs(
    fixture: str | None, request: pytest.FixtureRequest
) -> None:
    if fixture is not None:
        request.getfixturevalue(fixture)
    model, source = soft(), batch(9, 2, 5)
    types = np.array([*range(END + 3), 7, 9, 12])
    mask = np.zeros((3, len(types)), bool)
    mask[1, -2] = mask[2, -1] = True
    chosen = source, options(beam=3), Shortlisted(types, mask)
    found = beam_search(onnx_ensemble([model], architecture_of()), *chosen)
    assert_alike(found, beam_search(Ensemble([model]), *chosen))


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_no_output_depends_on_the_batch(
    precision: Precision, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated: dict[str, Any] = {"positions": {"maximum": 200}}
    ensemble = onnx_ensemble([soft(**stated)], architecture_of(**stated), precision)
    lengths = (3, 16, 30, 60, 70, 90, 130)
    source = batch(*lengths)
    together = beam_search(ensemble, source, options(beam=beam))
    for row, length in enumerate(lengths):
        (alone,) = beam_search(
            ensemble, source[row : row + 1, : length + 1], options(beam=beam)
        )
        assert alone == together[row]
    monkeypatch.setattr(by_onnx, "PART_NUMBERS", 1)
    monkeypatch.setattr(by_onnx, "PART_ROWS", 1)  # a sentence at a time
    assert beam_search(ensemble, source, options(beam=beam)) == together


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_no_output_depends_on_the_shortlists_of_the_batch(precision: Precision) -> None:
    """To the last bit: the types of other sentences are summed over too, as nothing."""
    ensemble = onnx_ensemble([soft()], architecture_of(), precision)
    lengths = (9, 2, 5, 1, 28, 12, 7)
    source, everything = batch(*lengths), np.arange(TYPES)
    mask = np.random.default_rng(1).random((len(lengths), TYPES)) < 0.5
    mask[:, : END + 3] = False
    together = beam_search(
        ensemble, source, options(beam=3), Shortlisted(everything, mask)
    )
    for row, length in enumerate(lengths):
        own = everything[~mask[row]]
        shortlist = Shortlisted(own, np.zeros((1, len(own)), bool))
        sentence = source[row : row + 1, : length + 1]
        assert beam_search(ensemble, sentence, options(beam=3), shortlist) == [
            together[row]
        ]


def test_equal_continuations_are_in_the_order_of_hypotheses_and_types() -> None:
    bias = np.zeros(100, np.float32)
    bias[[5, 40, 41, 70]] = [1, 1, 2, 1]
    layer = np.zeros((100, 8), np.float32), bias
    graph = search_graph.continuations([layer], "fp32", "probabilities", np.arange(100))
    given = search_graph.search_inputs(
        types=100, hypotheses=2, candidates=8, unknown_penalty=0
    )
    given |= {"0.features": np.ones((1, 2, 8), np.float32)}
    given |= {"scores": np.zeros((1, 2), np.float32), "limits": np.zeros(1, np.int64)}
    parents, chosen = graph.session().run(["parents", "chosen"], given)
    assert parents.tolist() == [[0, 1, 0, 0, 0, 1, 1, 1]]
    assert chosen.tolist() == [[41, 41, 5, 40, 70, 5, 40, 70]]


@pytest.mark.parametrize("damage", ["lacks", "has", "shape", "type", "infinite"])
def test_weights_of_another_network_are_refused(damage: str) -> None:
    arrays: dict[str, Any] = {
        name: tensor.numpy() for name, tensor in soft().state_dict().items()
    }
    name = "decoder.out_projection.bias"
    changed = {
        "lacks": {},
        "has": {name: arrays[name], "other": arrays[name]},
        "shape": {name: arrays[name][1:]},
        "type": {name: arrays[name].astype(np.int32)},
        "infinite": {name: arrays[name] + np.inf},
    }[damage]
    weights = {
        other: array for other, array in arrays.items() if other != name
    } | changed
    with pytest.raises(ValueError, match="other" if damage == "has" else name):
        OnnxEnsemble([Weights(weights, architecture_of(), (TYPES, TYPES))], "fp32", "")


def test_int8_is_near() -> None:
    source, wanted = batch(9, 2, 5), options(beam=1, minimum_length=3)
    near = beam_search(
        onnx_ensemble([soft()], architecture_of(), "int8"), source, wanted
    )
    exact = beam_search(Ensemble([soft()]), source, wanted)
    for ours, theirs in zip(near, exact, strict=True):
        assert ours[0].score == pytest.approx(theirs[0].score, abs=0.2)
        assert ours[0].score != theirs[0].score
