"""Vocabulary selection is the full softmax over the selected types alone: training and search."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from convs2s.data.batches import collate
from convs2s.data.shortlist import Shortlist
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import END, PADDING, UNKNOWN, Vocabulary
from convs2s.decoding.search import beam_search
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_json, read_lines, write_lines
from convs2s.model_file import load_model
from convs2s.models.build import build_network
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.layers import OutputTable
from convs2s.models.steps import Shortlisted
from convs2s.text.dictionary import read_candidates
from convs2s.training.data import TrainingData
from convs2s.training.loading import validation_batches
from convs2s.training.run import train
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.networks import TYPES, assert_alike, batch, network, options
from tests.support.refusals import refusal, says
from tests.support.tiny import make_update

SPECIAL = [PADDING, END, UNKNOWN]


def shortlist(frequent: int = 2, most: int = 3) -> Shortlist:
    """Source word ``s`` has the candidates s - 1, s and s + 1, as far as there are such types."""
    words = Vocabulary([str(index) for index in range(3, TYPES)])
    table = [
        (str(s), [str(s - 1), str(s), "no type", str(s + 1)]) for s in range(3, TYPES)
    ]
    table.append(("no type", ["3"]))
    return Shortlist.from_words(table, words, words, frequent=frequent, most=most)


def test_frequent_types_candidates_and_references_are_selected() -> None:
    chosen = shortlist()
    assert chosen.types([9, END]).tolist() == [*SPECIAL, 3, 4, 8, 9, 10]
    with_references = chosen.types([[9], [UNKNOWN]], [[17, END], [5, PADDING]])
    assert with_references.tolist() == [*SPECIAL, 3, 4, 5, 8, 9, 10, 17]
    assert shortlist(frequent=0, most=1).types([9]).tolist() == [*SPECIAL, 8]
    assert shortlist(frequent=500).types([]).tolist() == list(range(TYPES))


def outside_of(types: npt.NDArray[np.int64], size: int) -> Tensor:
    outside = torch.ones(size, dtype=torch.bool)
    outside[torch.from_numpy(types)] = False
    return outside


def selecting() -> ConvS2S:
    """A network with an output table, much sharper than an untrained one."""
    model = network(vocabulary_selection={})
    model.decoder.output.weight().data.mul_(5.0)
    return model


def test_search_is_the_full_search_without_the_types_that_a_sentence_does_not_select() -> (
    None
):
    source = batch(9, 2, 5)
    ensemble = Ensemble([selecting()])
    chosen = Shortlisted(*shortlist().of_sentences(source.tolist()))
    together = beam_search(ensemble, source, options(), chosen)
    for row, found in zip(source, together, strict=True):
        masked = selecting()
        outside = outside_of(shortlist().types(row), TYPES)
        masked.decoder.output.bias.data[outside] = -torch.inf
        alone = row[row != PADDING].unsqueeze(0)
        (expected,) = beam_search(Ensemble([masked]), alone, options())
        assert_alike([found], [expected], 1e-6)  # scores are summed in float32
    full = beam_search(ensemble, source, options())
    assert [one[0].tokens for one in together] != [one[0].tokens for one in full]


def test_the_output_table_is_drawn_as_any_lookup_table() -> None:
    torch.manual_seed(1)
    table = OutputTable(200, 2000)
    for parameter, tolerance in ((table.table, 0.001), (table.bias, 0.01)):
        assert float(parameter.mean().detach()) == pytest.approx(0.0, abs=tolerance)
        assert float(parameter.std().detach()) == pytest.approx(0.1, abs=tolerance)


# ---- training ----

SETTINGS = tiny.settings(
    {"vocabulary_selection": {"frequent": 1, "candidates": 2}, "dropout": 0.0},
    batch={"sentences": 4, "micro_batch_tokens": 20},
    maximum_epochs=1,
)


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("candidates") / "candidates.tsv"
    rows = (f"{word}\t{word}x {tiny.WORDS[0]}x" for word in tiny.WORDS[:-1])
    write_lines(path, ["source\ttargets", *rows])
    return path


@pytest.fixture(scope="module")
def data(task: Path) -> TrainingData:
    return TrainingData.read(task)


@pytest.fixture(scope="module")
def chosen(data: TrainingData, candidates: Path) -> Shortlist:
    vocabularies = (Vocabulary(data.types[side]) for side in ("source", "target"))
    table = read_candidates(candidates)
    return Shortlist.from_words(table, *vocabularies, frequent=1, most=2)


def updater(chosen: Shortlist | None) -> Updater:
    torch.manual_seed(1)
    built = build_network(SETTINGS.architecture, 15, 15).double()
    recipe = SETTINGS.training.model_copy(update={"clip": 1e9})
    return Updater(built, recipe, seed=1, device="cpu", shortlist=chosen)


def masked_loss(
    one: Updater, store: TokenStore, rows: Any, types: npt.NDArray[np.int64]
) -> tuple[Tensor, int]:
    """Return the summed loss over all types, those outside at minus infinity, and its tokens.

    References outside count as unknown.
    """
    read = collate(store, rows)
    target = np.where(np.isin(read.target, types), read.target, UNKNOWN)
    source, previous = map(torch.from_numpy, (read.source, read.previous))
    logits = one.network(source, previous)[0]
    logits = logits.masked_fill(outside_of(types, 15), -torch.inf).flatten(0, 1)
    loss = functional.cross_entropy(
        logits,
        torch.from_numpy(target).flatten(),
        ignore_index=PADDING,
        reduction="sum",
    )
    return loss, int((target != PADDING).sum())


def test_an_update_is_that_of_the_full_softmax_without_the_other_types(
    data: TrainingData, chosen: Shortlist
) -> None:
    one, other = (updater(chosen) for _ in range(2))
    # Two pairs with the word that is nobody's candidate: too few to select every type.
    rare = data.types["target"].index(f"{tiny.WORDS[-1]}x") + len(SPECIAL)
    rows = np.array([row for row in range(99) if rare in data.train[row][1]][:2])
    types = other.load(data.train, rows).types
    assert types is not None
    assert len(SPECIAL) < len(types) < 15
    # All references are selected.
    assert np.isin(collate(data.train, rows).target, types).all()
    loss, tokens = masked_loss(other, data.train, rows, types)
    (loss / tokens).backward()
    report = make_update(one, data.train, rows, Moment(1, 0, 0.25))
    assert report.loss == pytest.approx(loss.item(), abs=1e-9)
    found, expected = (
        [each.grad for each in made.network.parameters()] for made in (one, other)
    )
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)


def test_references_outside_count_as_unknown_in_validation(
    data: TrainingData, chosen: Shortlist
) -> None:
    one = updater(chosen)
    batches = validation_batches(data.valid, one.recipe, chosen)
    assert {len(rows) for rows in batches} == {4}
    total = 0.0
    count = 0
    for rows in batches:
        types = chosen.types(collate(data.valid, rows).source)
        loss, tokens = masked_loss(one, data.valid, rows, types)
        total += loss.item()
        count += tokens
    assert one.validate(data.valid) == pytest.approx(total / count, abs=1e-9)
    everything = updater(None).validate(data.valid)
    assert one.validate(data.valid, full=True) == pytest.approx(everything, abs=1e-9)
    assert total / count != pytest.approx(everything, abs=1e-3)


# ---- from a training to translations ----


@pytest.fixture(scope="module")
def trained(
    task: Path, candidates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("selecting") / "model.safetensors"
    train(tiny.job(task, path, SETTINGS, candidates=candidates))
    return path


def test_a_training_reports_both_perplexities_and_what_is_outside(
    trained: Path, data: TrainingData, chosen: Shortlist
) -> None:
    first = json.loads(next(read_lines(trained.with_name("history.jsonl"))))
    said: Any = read_json(trained.with_name("training.json"))
    full = said["source_use"]["perplexity"]
    assert full == pytest.approx(first["valid_perplexity_full"], abs=1e-4)
    assert full != pytest.approx(first["valid_perplexity"], abs=1e-2)
    sizes = []
    outside = []
    for rows in validation_batches(data.valid, SETTINGS.training, chosen):
        read = collate(data.valid, rows)
        types = chosen.types(read.source)
        sizes.append(len(types))
        outside += list(~np.isin(read.target[read.target != PADDING], types))
    expected = {"types": np.mean(sizes), "outside": np.mean(outside)}
    assert said["shortlist"] == pytest.approx(expected)
    assert 0 < said["shortlist"]["outside"] < 1


def test_translations_are_of_the_selected_types_unless_told_otherwise(
    trained: Path, model: Path, chosen: Shortlist
) -> None:
    _, description = load_model(trained)
    assert description.shortlist == chosen
    source, target = description.vocabularies()
    lines = [" ".join(tiny.WORDS[start : start + 3]) for start in range(8)]
    settings = options()
    found = list(LineTranslator([trained], settings, "cpu").translate(lines))
    for line, one in zip(lines, found, strict=True):
        types = chosen.types(source.encode(line.split()))
        assert {*one.tokens} <= {target.tokens[index] for index in types}
    everything = settings.model_copy(update={"vocabulary_selection": "full"})
    full = LineTranslator([trained], everything, "cpu").translate(lines)
    assert [one.tokens for one in full] != [one.tokens for one in found]
    # Models that select alike form an ensemble.
    LineTranslator([trained, trained], settings, "cpu")
    said = refusal(LineTranslator, [trained, model], settings, "cpu")
    says(said, "their shortlist differ")
