"""ConvS2S by ONNX Runtime finds what it finds by torch, whatever else is in the batch."""

import io
import random
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import yaml

from convs2s.api.translator import Translator
from convs2s.data.vocabulary import END, UNKNOWN
from convs2s.decoding.search import beam_search
from convs2s.files.text import read_json
from convs2s.model_file import calibrated, describe_model, load_model, load_weights
from convs2s.models import onnx_ensemble as by_onnx
from convs2s.models import onnx_search as search_graph
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.int8_scales import calibrate
from convs2s.models.onnx_builder import FLOATS, Graph
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import Weights
from convs2s.models.steps import Average, Precision, Shortlisted
from tests.conftest import Terminal
from tests.support import tiny
from tests.support.networks import (
    TYPES,
    architecture_of,
    assert_alike,
    batch,
    network,
    options,
)

NETWORKS: list[dict[str, Any]] = yaml.safe_load("""
- {}
- {kernels: [1, 1, 1], vocabulary_selection: {}}
- {kernels: [1, 2, 1], attention: [2]}
- {positions: {source: false, maximum: 30}}
- {attention: [1, 2], attention_weights: shared}
""")
SEARCHES = yaml.safe_load("""
- {beam: 1}
- {beam: 4, finished: leave, unknown_penalty: 2.0}
- {beam: 3, minimum_length: 4, maximum_length: {factor: 1, offset: 1}}
- {beam: 7, maximum_length: {factor: 0, offset: 40}}
""")
ROUNDED = yaml.safe_load("""
# By a scale of the row: the largest value is 127 units of 1.
- [null, [127.0, 0.6, -0.6], [127.0, 1.0, -1.0]]
# By a fixed scale: the largest value is 63.5, and below zero there is one more unit.
- [0.5, [1.0, 0.3, 0.2], [1.0, 0.5, 0.0]]
- [0.5, [100.0, 63.5, -70.0], [63.5, 63.5, -64.0]]
""")
LENGTHS = (9, 2, 5, 1, 28)
SOURCE = batch(*LENGTHS)
SIZES = TYPES, TYPES


def soft(seed: int = 0, factor: float = 0.7, **stated: Any) -> ConvS2S:
    """Return a network in float32 that finds no two continuations equally probable."""
    model = network(seed, **stated).float()
    for parameter in model.parameters():
        parameter.data.mul_(factor)
    return model


def arrays_of(model: ConvS2S) -> dict[str, npt.NDArray[Any]]:
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def scales_of(model: ConvS2S, **stated: Any) -> dict[str, float]:
    return calibrate(arrays_of(model), architecture_of(**stated), SIZES)


def onnx(
    models: Sequence[ConvS2S],
    precision: Precision = "fp32",
    average: Average = "probabilities",
    fixed: int = 0,
    **stated: Any,
) -> OnnxEnsemble:
    """Return the ensemble; ``fixed`` models have fixed scales of int8, others one for each row."""
    architecture = architecture_of(**stated)
    weights = []
    for number, model in enumerate(models):
        scales = scales_of(model, **stated) if number < fixed else {}
        weights.append(Weights(arrays_of(model), architecture, SIZES, scales))
    return OnnxEnsemble(weights, precision, average)


def assert_searches(**stated: Any) -> None:
    """Compare what searches find in a batch and alone, and with a shortlist."""
    model = soft(**stated)
    model.output.bias.data[UNKNOWN] += 1  # a word that only its penalty keeps out
    ours, theirs = onnx([model], **stated), Ensemble([model])
    for search in (options(**one) for one in SEARCHES):
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


def test_searches_find_what_torch_finds_in_a_batch_and_alone() -> None:
    """Alone it is one graph, which knows each setting of a search itself."""
    for stated in NETWORKS:
        assert_searches(**stated)


def test_small_groups_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are more than a step looks into, and a batch has parts of a sentence.

    Equal continuations are in the order of hypotheses and types, whatever types share a group.
    """
    monkeypatch.setattr(by_onnx, "GROUP", 2)
    monkeypatch.setattr(search_graph, "GROUP", 2)
    model = soft()
    for name in ("decoder.output.weight_g", "decoder.output.bias"):
        model.state_dict()[name].zero_()
    for found in beam_search(onnx([model]), SOURCE, options(beam=3)):
        assert [one.tokens for one in found] == [[], [UNKNOWN], [UNKNOWN, UNKNOWN]]
    monkeypatch.setattr(by_onnx, "PART_NUMBERS", 1)
    monkeypatch.setattr(by_onnx, "PART_ROWS", 1)
    assert_searches()


def test_a_network_without_positions_is_torchs() -> None:
    """Its states repeat themselves in long outputs, of which many are equally probable."""
    stated: dict[str, Any] = {"positions": {"source": False, "target": False}}
    model = soft(**stated)
    ours = onnx([model], **stated)
    assert ours.positions("target") is None
    chosen = SOURCE, options(beam=1)
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
    ("precision", "fixed"), [("fp32", 0), ("int8", 0), ("int8", 1)]
)
@pytest.mark.parametrize("shortlisted", [False, True])
def test_no_output_depends_on_the_batch(
    precision: Precision, fixed: int, shortlisted: bool
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


# ---- int8 ----


def linear(
    weight: torch.Tensor, x: torch.Tensor, scale: float | None = None
) -> torch.Tensor:
    """Multiply rows by a weight in int8, by a fixed scale or one for each row."""
    graph = Graph("int8")
    rows = graph.input("x", FLOATS, ["rows", x.shape[1]])
    if scale is not None:
        rows = graph.quantize(rows, scale)
    bias = np.zeros(len(weight), np.float32)
    graph.output("y", graph.linear(rows, weight.numpy(), bias, scale))
    return torch.from_numpy(graph.session().run(["y"], {"x": x.numpy()})[0])


def test_int8_rounds_to_units_and_adds_up_in_more_than_16_bits() -> None:
    weight = torch.tensor([[127.0, 0.0, 0.0], [0.0, -254.0, 254.0]])
    for scale, x, rounded in ROUNDED:
        found = linear(weight, torch.tensor([x]), scale)
        torch.testing.assert_close(found, torch.tensor([rounded]) @ weight.T)
    ones = torch.ones(1, 4096)
    found = linear(torch.cat([ones, -ones]), ones)
    torch.testing.assert_close(found, torch.tensor([[4096.0, -4096.0]]))


def test_int8_finds_nearly_what_fp32_finds() -> None:
    """Also beside a network that has none: each has a state and an output layer of its own kind."""

    def best(ensemble: OnnxEnsemble) -> list[float]:
        return [found[0].score for found in beam_search(ensemble, SOURCE, options())]

    for stated in NETWORKS:
        model = soft(factor=0.5, **stated)
        exact = pytest.approx(best(onnx([model], **stated)), abs=0.05)
        by_row = best(onnx([model], "int8", **stated))
        fixed = best(onnx([model], "int8", fixed=1, **stated))
        assert by_row == exact
        assert fixed == exact
        assert by_row != fixed
        assert best(onnx([model, model], "int8", fixed=1, **stated)) == exact


@pytest.mark.parametrize("factor", [0.0, 3e3, 1e38])
def test_a_network_that_fixed_scales_would_spoil_has_none(factor: float) -> None:
    """Beside one type of huge values, all others would be zeros; what is zero has no scale."""
    model = soft()
    weights = model.state_dict()
    weights["encoder.embedding.positions"].mul_(min(factor, 1.0))
    table = weights["encoder.embedding.tokens"]
    table[:-1] *= min(factor, 1.0)
    table[-1] *= factor
    assert scales_of(model) == {}


def test_a_scale_is_the_largest_magnitude_by_127() -> None:
    """The random sentences have all of a small vocabulary's types at the first positions."""
    model = soft(factor=0.5)
    scales = scales_of(model)
    table = model.encoder.embedding.tokens.detach()
    positions = model.state_dict()["encoder.embedding.positions"]
    read = table[1:, None] + positions[None, :4]
    assert scales["encoder.in_projection"] >= float(read.abs().max()) / 127.001
    table.mul_(2)
    assert scales_of(model)["encoder.in_projection"] > scales["encoder.in_projection"]


def test_a_model_file_has_the_scales_of_its_weights(
    model: Path, recurrent: Path
) -> None:
    """Found again, with other threads and random numbers, they are the same to the last bit.

    A network without graphs has none.
    """
    weights, description = load_weights(model)
    assert description.int8_scales
    torch.set_num_threads(2)
    np.random.default_rng().random()
    again = calibrate(weights, description.architecture, description.sizes)
    assert again == description.int8_scales
    lstm, description = load_model(recurrent)
    assert calibrated(description, lstm.state_dict()) == description


# ---- exported ----


def test_the_program_beside_exported_graphs_translates_as_greedy_search(
    sharp: Path,
    tmp_path: Path,
    run: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    draw = random.Random(1)
    words = [*tiny.WORDS, "never"]
    lines = [" ".join(draw.choices(words, k=length)) for length in range(1, 21)]
    run("export", "onnx", sharp, tmp_path / "folder")
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    runpy.run_path(str(tmp_path / "folder/translate.py"))
    written = capsys.readouterr().out.splitlines()
    translator = Translator.load(sharp, device="cpu", pretokenized=True)
    found = translator.translate(lines, beam=1, replace_unknown=False)
    assert written == [one.text for one in found]
    assert len(set(written)) == len(lines)
    stated: Any = read_json(tmp_path / "folder/config.json")
    prepared = describe_model(sharp).model_dump(mode="json")
    names = "languages preparation glossaries splittable truecasers dictionary"
    for name in (*names.split(), "architecture"):
        assert stated[name] == prepared[name]
