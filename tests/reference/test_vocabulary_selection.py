"""Vocabulary selection is the full softmax over the selected types alone: training and search."""

import json
import math
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
from convs2s.files.text import write_lines
from convs2s.model_file import load_model
from convs2s.models.build import build_network
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network
from convs2s.models.steps import Shortlisted
from convs2s.training.data import TrainingData
from convs2s.training.loading import validation_batches
from convs2s.training.run import train
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.networks import TYPES, batch, network, options
from tests.support.refusals import refusal, says
from tests.support.updates import make_update

SPECIAL = [PADDING, END, UNKNOWN]


def shortlist(frequent: int = 2, most: int = 3) -> Shortlist:
    """Source word ``s`` has the candidates s - 1, s and s + 1, as far as there are such types."""
    numbers = range(3, TYPES)
    words = Vocabulary(list(map(str, numbers)))
    table = [(str(s), [str(s - 1), str(s), "no type", str(s + 1)]) for s in numbers]
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
    lists = Shortlisted(*shortlist().of_sentences(source.tolist()))
    together = beam_search(Ensemble([selecting()]), source, options(), lists)
    for row, found in zip(source, together, strict=True):
        masked = selecting()
        outside = outside_of(shortlist().types(row), TYPES)
        masked.decoder.output.bias.data[outside] = -torch.inf
        alone = row[row != PADDING].unsqueeze(0)
        (expected,) = beam_search(Ensemble([masked]), alone, options())
        for mine, one in zip(found, expected, strict=True):
            assert (mine.tokens, mine.alignment) == (one.tokens, one.alignment)
            # Scores are summed in float32.
            assert mine.score == pytest.approx(one.score, 1e-6)
    full = beam_search(Ensemble([selecting()]), source, options())
    assert [one[0].tokens for one in together] != [one[0].tokens for one in full]


# ---- training ----

SETTINGS = tiny.settings(
    {"vocabulary_selection": {"frequent": 1, "candidates": 2}, "dropout": 0.0},
    batch={"sentences": 4, "micro_batch_tokens": 20},
    maximum_epochs=1,
)
CANDIDATES = [(word, [f"{word}x", f"{tiny.WORDS[0]}x"]) for word in tiny.WORDS[:-1]]


@pytest.fixture(scope="module")
def data(task: Path) -> TrainingData:
    return TrainingData.read(task)


@pytest.fixture(scope="module")
def chosen(data: TrainingData) -> Shortlist:
    vocabularies = (Vocabulary(data.types[side]) for side in ("source", "target"))
    return Shortlist.from_words(CANDIDATES, *vocabularies, frequent=1, most=2)


def masked_loss(
    network: Network, store: TokenStore, rows: Any, types: npt.NDArray[np.int64]
) -> tuple[Tensor, int]:
    """Return the summed loss over all types, those outside at minus infinity, and its tokens.

    References outside count as unknown.
    """
    read = collate(store, rows)
    known = np.where(np.isin(read.target, types), read.target, UNKNOWN)
    source, previous = torch.from_numpy(read.source), torch.from_numpy(read.previous)
    target = torch.from_numpy(known).flatten()
    logits = network(source, previous)[0].masked_fill(outside_of(types, 15), -torch.inf)
    loss = functional.cross_entropy(
        logits.flatten(0, 1), target, ignore_index=PADDING, reduction="sum"
    )
    return loss, int((target != PADDING).sum())


def test_an_update_is_that_of_the_full_softmax_without_the_other_types(
    data: TrainingData, chosen: Shortlist
) -> None:
    networks = []
    for _ in range(2):
        torch.manual_seed(1)
        networks.append(build_network(SETTINGS.architecture, 15, 15).double())
    one, other = networks
    recipe = SETTINGS.training.model_copy(update={"clip": 1e9})
    updater = Updater(one, recipe, seed=1, device="cpu", shortlist=chosen)
    # Two pairs with the word that is nobody's candidate: too few to select every type.
    rare = data.types["target"].index(f"{tiny.WORDS[-1]}x") + len(SPECIAL)
    rows = np.array([row for row in range(99) if rare in data.train[row][1]][:2])
    types = updater.load(data.train, rows).types
    assert types is not None
    assert len(SPECIAL) < len(types) < 15
    # All references are selected.
    assert np.isin(collate(data.train, rows).target, types).all()
    loss, tokens = masked_loss(other, data.train, rows, types)
    (loss / tokens).backward()
    report = make_update(updater, data.train, rows, Moment(1, 0, 0.25))
    assert report.loss == pytest.approx(loss.item(), abs=1e-9)
    for mine, its in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, its.grad, atol=1e-9, rtol=0)


# ---- from a training to translations ----


@pytest.fixture(scope="module")
def trained(task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selecting")
    candidates = folder / "candidates.tsv"
    rows = (f"{word}\t{' '.join(targets)}" for word, targets in CANDIDATES)
    write_lines(candidates, ["source\ttargets", *rows])
    path = folder / "model.safetensors"
    train(tiny.job(task, path, SETTINGS, candidates=candidates))
    return path


def test_in_validation_references_outside_count_as_unknown(
    trained: Path, data: TrainingData, chosen: Shortlist
) -> None:
    """The training reports their share, and the perplexity over all types."""
    network, _ = load_model(trained)
    selected = full = 0.0
    tokens = 0
    sizes = []
    outside = []
    for rows in validation_batches(data.valid, SETTINGS.training, chosen):
        read = collate(data.valid, rows)
        types = chosen.types(read.source)
        sizes.append(len(types))
        outside += list(~np.isin(read.target[read.target != PADDING], types))
        loss, count = masked_loss(network.eval(), data.valid, rows, types)
        selected += loss.item()
        full += masked_loss(network, data.valid, rows, np.arange(15))[0].item()
        tokens += count
    history = trained.with_name("history.jsonl").read_text("utf-8")
    first = json.loads(history.splitlines()[0])
    said = json.loads(trained.with_name("training.json").read_text("utf-8"))
    over_all = pytest.approx(math.exp(full / tokens), rel=1e-4)
    assert first["valid_perplexity_full"] == over_all
    assert said["source_use"]["perplexity"] == over_all
    assert first["valid_perplexity"] != over_all
    perplexity = pytest.approx(math.exp(selected / tokens), rel=1e-4)
    assert first["valid_perplexity"] == perplexity
    expected = {"types": np.mean(sizes), "outside": np.mean(outside)}
    assert said["shortlist"] == pytest.approx(expected)
    assert 0 < said["shortlist"]["outside"] < 1


def test_translations_are_of_the_selected_types_unless_told_otherwise(
    trained: Path, chosen: Shortlist
) -> None:
    _, description = load_model(trained)
    assert description.shortlist == chosen
    source, target = description.vocabularies()
    lines = [" ".join(tiny.WORDS[start : start + 3]) for start in range(8)]
    outputs = []
    for settings in (options(), options(vocabulary_selection="full")):
        translator = LineTranslator([trained], settings, "cpu")
        outputs.append([one.tokens for one in translator.translate(lines)])
    selected, full = outputs
    for line, tokens in zip(lines, selected, strict=True):
        types = chosen.types(source.encode(line.split()))
        assert {*tokens} <= {target.tokens[index] for index in types}
    assert full != selected


def test_models_that_select_alike_alone_form_an_ensemble(
    trained: Path, model: Path
) -> None:
    LineTranslator([trained, trained], options(), "cpu")
    said = refusal(LineTranslator, [trained, model], options(), "cpu")
    says(said, "their shortlist differ")
