"""Vocabulary selection: what is selected, and that it is the full softmax over the same types."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from convs2s.config.architecture import VocabularySelection
from convs2s.config.decoding import DecodingSettings
from convs2s.config.load import load
from convs2s.config.model import BatchLimits, ModelSettings
from convs2s.data.batches import Batch, collate
from convs2s.data.shortlist import Shortlist, places_of
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import END, PADDING, UNKNOWN, Vocabulary
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.model_file import load_model, save_model
from convs2s.models.build import build_network
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.layers import OutputTable
from convs2s.models.steps import Shortlisted
from convs2s.text.dictionary import read_candidates
from convs2s.training.data import TrainingData
from convs2s.training.identity import TrainingJob, identity
from convs2s.training.loading import permuted_sources, validation_batches
from convs2s.training.run import train
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.networks import TYPES, batch, network, options
from tests.unit.conftest import Terminal

# ---- what is selected ----

SPECIAL = [PADDING, END, UNKNOWN]


def shortlist(frequent: int = 2, most: int = 3) -> Shortlist:
    """Source word ``s`` has the candidates s - 1, s and s + 1, as far as there are such types."""
    words = Vocabulary([str(index) for index in range(3, TYPES)])
    table = [
        (str(s), [str(s - 1), str(s), "no type", str(s + 1)]) for s in range(3, TYPES)
    ]
    return Shortlist.from_words(table, words, words, frequent=frequent, most=most)


def test_frequent_types_candidates_and_references_are_selected() -> None:
    chosen = shortlist()
    assert chosen.types([9, END]).tolist() == [*SPECIAL, 3, 4, 8, 9, 10]
    assert chosen.types([[9, 15], [PADDING, UNKNOWN]]).tolist() == [
        *(*SPECIAL, 3, 4, 8, 9, 10, 14, 15, 16),
    ]
    assert chosen.types([9], [[17, END], [5, PADDING]]).tolist() == [
        *(*SPECIAL, 3, 4, 5, 8, 9, 10, 17),
    ]
    assert shortlist(frequent=0, most=1).types([9]).tolist() == [*SPECIAL, 8]
    assert shortlist(frequent=500).types([]).tolist() == list(range(TYPES))


def test_pairs_to_learn_from_bring_their_references() -> None:
    store = cast(TokenStore, [(np.array([9, END]), np.array([17, END]))])
    assert shortlist().types(*store[0]).tolist() == [*SPECIAL, 3, 4, 8, 9, 10, 17]


def test_words_that_no_vocabulary_has_are_left_out() -> None:
    source, target = Vocabulary(["a"]), Vocabulary(["x", "y", "z"])
    table = [("a", ["z", "rare", "y"]), ("rare", ["x"]), ("<unk>", ["x"])]
    chosen = Shortlist.from_words(table, source, target, frequent=0, most=100)
    assert chosen.types(range(len(source))).tolist() == [*SPECIAL, 4, 5]


def test_places_of_types_outside_are_unknown() -> None:
    types = np.array([*SPECIAL, 5, 9])
    tokens = np.array([[PADDING, END, 9, 5], [4, 8, 10, UNKNOWN]])
    assert places_of(types, tokens).tolist() == [[PADDING, END, 4, 3], [UNKNOWN] * 4]


def test_a_table_of_candidates_names_its_fault(tmp_path: Path) -> None:
    path = tmp_path / "candidates.tsv"
    write_lines(path, ["source\ttargets", "the\tdie der", "house"])
    rows = read_candidates(path)
    assert next(rows) == ("the", ["die", "der"])
    with pytest.raises(UserError, match=r"candidates.tsv:3: expected the columns"):
        next(rows)
    write_lines(path, ["the\tdie der"])
    with pytest.raises(UserError, match=r"candidates.tsv:1: expected the columns"):
        next(read_candidates(path))


# ---- the network ----


def selecting() -> ConvS2S:
    """A network with an output table, much sharper than an untrained one."""
    model = network(vocabulary_selection={})
    model.decoder.output.weight().data.mul_(5.0)
    return model


def test_the_output_table_is_drawn_as_any_lookup_table() -> None:
    torch.manual_seed(1)
    table = OutputTable(200, 2000)
    assert {name for name, _ in table.named_parameters()} == {"table", "bias"}
    for parameter, tolerance in ((table.table, 0.001), (table.bias, 0.01)):
        assert float(parameter.mean().detach()) == pytest.approx(0.0, abs=tolerance)
        assert float(parameter.std().detach()) == pytest.approx(0.1, abs=tolerance)


def test_only_a_model_that_selects_has_an_output_table() -> None:
    names = set(dict(build_network(settings().architecture, 9, 9).named_parameters()))
    assert {name for name in names if name.startswith("decoder.output")} == {
        "decoder.output.table",
        "decoder.output.bias",
    }
    plain = build_network(tiny.settings().architecture, 9, 9)
    assert "decoder.output.weight_g" in dict(plain.named_parameters())


# ---- search ----


def search(
    model: ConvS2S, source: Tensor, chosen: Shortlist | None = None
) -> list[list[Hypothesis]]:
    selected = None
    if chosen is not None:
        selected = Shortlisted(*chosen.of_sentences(source.tolist()))
    return beam_search(Ensemble([model]), source, options(), selected)


def assert_same(one: list[Hypothesis], other: list[Hypothesis]) -> None:
    assert [found.tokens for found in one] == [found.tokens for found in other]
    assert [found.alignment for found in one] == [found.alignment for found in other]
    # Scores are summed in float32.
    assert [found.score for found in one] == pytest.approx(
        [found.score for found in other], 1e-6
    )


def test_search_is_the_full_search_without_the_other_types() -> None:
    source = batch(9, 2, 5)
    together = search(selecting(), source, shortlist())
    for row, found in zip(source, together, strict=True):
        mask = selecting()
        outside = torch.ones(TYPES, dtype=torch.bool)
        outside[torch.from_numpy(shortlist().types(row))] = False
        mask.decoder.output.bias.data[outside] = -torch.inf
        assert_same(found, search(mask, row[row != PADDING].unsqueeze(0))[0])
    assert any(
        found[0].tokens != other[0].tokens
        for found, other in zip(together, search(selecting(), source), strict=True)
    )


def test_a_selection_does_not_depend_on_the_batch() -> None:
    source = batch(9, 2, 5)
    for row, found in zip(
        source, search(selecting(), source, shortlist()), strict=True
    ):
        assert_same(
            found, search(selecting(), row[row != PADDING].unsqueeze(0), shortlist())[0]
        )


def test_a_selection_of_everything_is_none() -> None:
    source = batch(9, 2, 5)
    everything = search(selecting(), source, shortlist(frequent=TYPES))
    for found, other in zip(everything, search(selecting(), source), strict=True):
        assert_same(found, other)


# ---- training ----


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny.prepare(tmp_path_factory.mktemp("task"))
    rows = (f"{word}\t{word}x {tiny.WORDS[0]}x" for word in tiny.WORDS[:-1])
    write_lines(folder / "candidates.tsv", ["source\ttargets", *rows])
    return folder


def settings(
    architecture: dict[str, Any] | None = None, **training: Any
) -> ModelSettings:
    selecting = {"vocabulary_selection": {"frequent": 1, "candidates": 2}}
    return tiny.settings({**selecting, **(architecture or {})}, **training)


def of_task(data: TrainingData, task: Path) -> Shortlist:
    vocabularies = (Vocabulary(data.types[side]) for side in ("source", "target"))
    table = read_candidates(task / "candidates.tsv")
    return Shortlist.from_words(table, *vocabularies, frequent=1, most=2)


def updater(task: Path, data: TrainingData, chosen: Shortlist | None) -> Updater:
    """Updates in float64, without dropout or clipping; batches are of several micro-batches."""
    wanted = settings(
        {"dropout": 0.0}, batch={"sentences": 16, "micro_batch_tokens": 20}
    )
    torch.manual_seed(1)
    sizes = (len(data.types[side]) + len(SPECIAL) for side in ("source", "target"))
    return Updater(
        build_network(wanted.architecture, *sizes).double(),
        wanted.training.model_copy(update={"clip": math.inf}),
        seed=1,
        device="cpu",
        shortlist=chosen,
    )


def masked_loss(
    one: Updater,
    batch_of: Batch,
    types: np.ndarray[Any, Any],
    target: np.ndarray[Any, Any],
) -> Tensor:
    """The summed loss over all types, those that are not selected at minus infinity."""
    arrays = (batch_of.source, batch_of.previous, target)
    source, previous, truth = (torch.from_numpy(array) for array in arrays)
    logits = one.network(source, previous)[0]
    outside = torch.ones(logits.shape[-1], dtype=torch.bool)
    outside[torch.from_numpy(types)] = False
    logits = logits.masked_fill(outside, -torch.inf).flatten(0, 1)
    return functional.cross_entropy(
        logits, truth.flatten(), ignore_index=PADDING, reduction="sum"
    )


def test_updates_are_those_of_the_full_softmax_without_the_other_types(
    task: Path,
) -> None:
    data = TrainingData.read(task)
    one, reference = (updater(task, data, of_task(data, task)) for _ in range(2))
    rows = np.arange(3)  # too few for every type to be selected
    types = reference.loader.load(data.train, rows).types
    assert types is not None
    assert len(SPECIAL) < len(types) < len(data.types["target"])
    whole = collate(data.train, rows)
    loss = masked_loss(reference, whole, types, whole.target)
    (loss / int((whole.target != PADDING).sum())).backward()
    report = one.update(data.train, rows, Moment(1, 0, 0.25))
    assert report.loss == pytest.approx(loss.item(), abs=1e-9)
    for mine, other in zip(
        one.network.parameters(), reference.network.parameters(), strict=True
    ):
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-9, rtol=0)


def test_references_outside_count_as_unknown_in_validation(task: Path) -> None:
    data = TrainingData.read(task)
    chosen = of_task(data, task)
    one = updater(task, data, chosen)
    limits = BatchLimits(sentences=4, micro_batch_tokens=None)
    one.recipe = one.recipe.model_copy(update={"batch": limits})
    batches = validation_batches(data.valid, one.recipe, chosen)
    assert {len(rows) for rows in batches} == {4}
    total, tokens, replaced = 0.0, 0, 0
    with torch.no_grad():
        for rows in batches:
            read = collate(data.valid, rows)
            types = chosen.types(read.source)
            target = np.where(np.isin(read.target, types), read.target, UNKNOWN)
            replaced += int((target != read.target).sum())
            total += masked_loss(one, read, types, target).item()
            tokens += int((read.target != PADDING).sum())
    assert replaced > 0
    assert one.validate(data.valid) == pytest.approx(total / tokens, abs=1e-9)
    everything = updater(task, data, None).validate(data.valid)
    assert one.validate(data.valid, full=True) == pytest.approx(everything, abs=1e-9)


# ---- from a training to translations ----


def job(task: Path, output: Path, candidates: Path | None) -> TrainingJob:
    wanted = settings(maximum_epochs=1, batch={"sentences": 4})
    return tiny.job(task, output, wanted, candidates=candidates)


@pytest.fixture(scope="module")
def trained(task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("selecting") / "model.safetensors"
    train(job(task, path, task / "candidates.tsv"))
    return path


def test_a_training_reports_both_perplexities_and_what_is_outside(
    trained: Path, task: Path
) -> None:
    first = json.loads(
        (trained.parent / "history.jsonl").read_text("utf-8").splitlines()[0]
    )
    assert first["valid_perplexity"] == pytest.approx(math.exp(first["valid_loss"]))
    assert first["valid_perplexity_full"] != first["valid_perplexity"]
    stored = json.loads((trained.parent / "training.json").read_text("utf-8"))
    full = stored["source_use"]["perplexity"]
    assert full == pytest.approx(first["valid_perplexity_full"], abs=1e-4)
    figures, data = stored["shortlist"], TrainingData.read(task)
    everything = Updater(
        load_model(trained)[0], settings().training, seed=1, device="cpu"
    )
    permuted = everything.validate(
        data.valid, full=True, sources=permuted_sources(data.valid)
    )
    assert stored["source_use"]["permuted_perplexity"] == pytest.approx(
        math.exp(permuted), rel=1e-4
    )
    chosen, recipe = of_task(data, task), settings(batch={"sentences": 4}).training
    read = [
        collate(data.valid, rows)
        for rows in validation_batches(data.valid, recipe, chosen)
    ]
    types = [chosen.types(batch.source) for batch in read]
    assert figures["types"] == pytest.approx(
        np.mean([len(of_batch) for of_batch in types])
    )
    outside = sum(
        int((~np.isin(batch.target, of_batch)).sum())
        for batch, of_batch in zip(read, types, strict=True)
    )
    tokens = sum(int((batch.target != PADDING).sum()) for batch in read)
    assert 0 < outside < tokens
    assert figures["outside"] == pytest.approx(outside / tokens)


def test_the_model_file_has_all_that_translation_needs(
    trained: Path, task: Path, run: Terminal
) -> None:
    _, description = load_model(trained)
    assert description.shortlist == of_task(TrainingData.read(task), task)
    lines = [" ".join(tiny.WORDS[start : start + 3]) for start in range(8)]
    text = "".join(f"{line}\n" for line in lines).encode()
    selected = run(
        "translate", trained, "--json", "--maximum-length.offset", 5, text=text
    )
    target = description.vocabularies()[1]
    for line in map(json.loads, selected.splitlines()):
        source = description.vocabularies()[0].encode(line["source_tokens"])
        assert description.shortlist is not None
        allowed = {
            target.tokens[index] for index in description.shortlist.types(source)
        }
        assert set(line["tokens"]) <= allowed
    options = ("--maximum-length.offset", 5, "--vocabulary-selection", "full")
    full = run("translate", trained, "--json", *options, text=text)
    assert len(full.splitlines()) == len(lines)
    assert full != selected


def test_candidates_are_part_of_a_trainings_identity(
    trained: Path, task: Path, tmp_path: Path
) -> None:
    stored = json.loads((trained.parent / "training.json").read_text("utf-8"))
    assert "candidates.tsv" in stored["manifest"]["identity"]["data"]
    with pytest.raises(
        UserError, match=r"vocabulary_selection: needs the alignment's candidates"
    ):
        train(job(task, tmp_path / "model.safetensors", None))
    plain = tiny.job(task, tmp_path / "m", candidates=task / "candidates.tsv")
    with pytest.raises(UserError, match="this model selects no vocabulary"):
        train(plain)
    # A training from before there was shortlist is the same as one that does not select.
    named = identity(replace(plain, candidates=None), TrainingData.read(task).checksums)
    assert "vocabulary_selection" not in named["architecture"]


def test_models_that_select_alike_alone_form_an_ensemble(
    trained: Path, model: Path, tmp_path: Path
) -> None:
    loaded, description = load_model(trained)
    changed = tmp_path / "model.safetensors"
    selection = VocabularySelection(frequent=2, candidates=2)
    architecture = description.architecture.model_copy(
        update={"vocabulary_selection": selection}
    )
    save_model(
        changed, loaded.state_dict(), replace(description, architecture=architecture)
    )
    LineTranslator([trained, trained], DecodingSettings(), "cpu")
    for other in (changed, model):
        with pytest.raises(UserError, match="their shortlist differ"):
            LineTranslator([trained, other], DecodingSettings(), "cpu")


# ---- the configuration ----


def test_the_ablations_select_their_vocabulary_and_no_other_model_does(
    root: Path,
) -> None:
    models = load(root).models
    selecting = {name for name, model in models.items() if model.architecture.selection}
    assert selecting == {
        name for name in models if name == "ablation" or name.startswith("ablation_")
    }


def test_pieces_of_words_cannot_be_selected(copy: Path) -> None:
    file = copy / "config/tasks/wmt14_en_de.yaml"
    text = file.read_text("utf-8")
    file.write_text(text.replace("model: wmt14_en_de", "model: ablation"), "utf-8")
    with pytest.raises(
        UserError, match=r"headline.model: 'ablation' selects its vocabulary by"
    ):
        load(copy)
