"""What of the configuration results are known by: an update of the code keeps their names."""

from pkgutil import resolve_name
from typing import Any

import yaml

from convs2s.config.decoding import DecodingSettings
from convs2s.config.identity import (
    counted,
    machine_settings,
    recipe_identity,
    training_settings,
)
from convs2s.config.model import ModelSettings, Recipe
from convs2s.config.section import Section
from convs2s.config.settings import Settings
from tests.support import tiny

DEFAULTS: dict[str, Any] = yaml.safe_load("""
model.Recipe:
  start: null
  batch: {sentences: 64, tokens: null, micro_batch_tokens: 4000, lengths: null, split: accumulate}
  optimizer: nesterov
  learning_rate: 0.25
  momentum: 0.99
  normalize: tokens
  clip: 0.1
  label_smoothing: 0.0
  schedule: {kind: plateau, divide_by: 10.0, minimum: 0.0001, hold: 5.0, every: 1.0, warmup: 0.5}
  velocity: keep
  maximum_epochs: null
  best_by: null
  average: null
  precision: fp32
  compile: false
architecture.ConvS2SArchitecture:
  kind: convs2s
  embedding: 512
  output_embedding: 512
  attention: all
  attention_weights: null
  positions: {source: true, target: true, maximum: 1024}
  dropout: 0.1
  vocabulary_selection: null
  gradient_scaling: paper
architecture.VocabularySelection: {frequent: 500, candidates: 100}
architecture.LstmArchitecture:
  layers: 4
  cells: 1000
  embedding: 1000
  dropout: 0.0
  initialization: 0.08
  reverse_source: true
architecture.RnnArchitecture:
  cell: gru
  attention: bahdanau
  layers: 1
  cells: 1000
  embedding: 620
  dropout: 0.0
decoding.DecodingSettings:
  beam: 5
  length_penalty: 1.0
  minimum_length: 0
  maximum_length: {factor: 1.5, offset: 10}
  unknown_penalty: 0.0
  finished: replace
  replace_unknown: true
  vocabulary_selection: model
  ensemble: probabilities
  precision: fp32
  cuda_graphs: true
  batch_sentences: 64
  batch_tokens: 4000
task.Task:
  titles: null
  hold_out: null
  bleu_tokenize: 13a
  preparation: {train: moses_train, test: moses_test, truecase: false}
  clean: {minimum: 1, maximum: 175, ratio: 1.5, tokens: 1023, remove_overlap: false}
  vocabulary:
    kind: bpe
    merges: 8000
    joint: true
    threshold: 0
    glossaries: []
    source_size: null
    target_size: null
    minimum_count: 1
  alignment: {dictionary: aligned, aligner: fast_align, pairs: null, seed: 1}
corpus.Titles: {one_in: 43}
""")
"""A new key comes here with its default. None may change: a result is known by what its keys say
beside their defaults, so one of before would be taken for another. Only ``cuda_graphs`` did, before
a release: on a GPU it changes a score's last digits, and nothing elsewhere."""

OF_NO_RESULT = (
    "checkpoint_minutes tensorboard threads text paper_pairs vocabulary_of n_best released "
    "headline metric metrics rouge"
)


def test_no_default_changes() -> None:
    for name, defaults in DEFAULTS.items():
        found = {}
        for key, field in resolve_name(f"convs2s.config.{name}").model_fields.items():
            if not field.is_required() and key not in OF_NO_RESULT.split():
                value = field.get_default(call_default_factory=True)
                is_section = isinstance(value, Section)
                found[key] = value.model_dump(mode="json") if is_section else value
        assert found == defaults


def test_newer_keys_count_where_they_say_something() -> None:
    assert "best_by" not in counted(Recipe())
    assert counted(Recipe(best_by="bleu")) == counted(Recipe()) | {"best_by": "bleu"}
    assert "cuda_graphs" not in counted(DecodingSettings())
    assert counted(DecodingSettings(cuda_graphs=False))["cuda_graphs"] is False


def test_what_changes_no_result_does_not_count(settings: Settings) -> None:
    recipe = Recipe(checkpoint_minutes=1, tensorboard=True, threads=7)
    assert counted(recipe) == counted(Recipe())
    assert machine_settings(recipe) == {"checkpoint_minutes": 1, "tensorboard": True}
    task = counted(settings.tasks["demo_en_fr"])
    keys = "languages titles hold_out preparation clean vocabulary alignment"
    assert task.keys() == set(keys.split())
    assert task["alignment"].keys() == {"dictionary", "pairs", "seed"}
    assert task["clean"].keys() == {"minimum", "maximum", "ratio"}


def known(model: ModelSettings) -> Any:
    return recipe_identity(model.architecture, model.training)["training"]


def test_null_is_stated_in_settings_and_left_out_of_an_identity() -> None:
    model = tiny.settings(batch={"sentences": None, "tokens": 100})
    stated: Any = training_settings(model)["training"]
    assert stated["batch"]["sentences"] is None
    assert set(known(model)["batch"]) == {"tokens", "micro_batch_tokens", "split"}


def test_only_what_went_by_bleu_is_trained_anew_since_the_loss_decides_ties() -> None:
    by_bleu = known(tiny.settings(best_by="bleu"))
    assert by_bleu == known(tiny.settings()) | {"best_by": "bleu, then loss"}
