"""Calls of ``convs2s.Translator`` with what it cannot take."""

import pickle
import shutil
from pathlib import Path

import pytest
import yaml

from convs2s.api.translator import Translator
from tests.support.refusals import refusal, refuses, rows, says

ONE = ["w1"]


@pytest.fixture(scope="module")
def translator(sharp: Path) -> Translator:
    return Translator.load(sharp, device="cpu")


CALLS = r"""
w1 => {} => texts: expected a list ... one text
[w1, 2] => {} => texts:2: ... Python type int
["w\\0"] => {} => texts:1: ... NUL at character 2
["w1\\nw2"] => {} => texts:1: ... line feed at character 3
["w\\ud800"] => {} => half a surrogate pair at character 2
[w1] => {baem: 3} => translate: ... 'baem' ... did you mean 'beam'
[w1] => {minimum_length: 6, maximum_length: {factor: 0, offset: 5}} => minimum_length 6 is above
[w1] => {n_best: 0} => translate: n_best: ... at least 1
[w1] => {beam: 2, n_best: 3} => a beam of 2
[w1] => {length_penalty: {tuned_on: valid}} => length_penalty:
[w1] => {cuda_graphs: false} => translate: cuda_graphs: ... pass it to load
"""


PAIRS = r"""
w1 => pairs: expected a list of pairs
[[w1, w2], [w1]] => pairs:2: expected a pair
[[w1, "w\\0"]] => pairs:1: ... NUL
"""


def test_what_cannot_be_translated_or_scored(translator: Translator) -> None:
    for texts, settings, words in rows(CALLS):
        stated = yaml.safe_load(settings)
        refuses(words, translator.translate, yaml.safe_load(texts), **stated)
    refuses(
        "1,200,000 bytes ... at most 1,048,576", translator.translate, ["é" * 600_000]
    )
    for pairs, words in rows(PAIRS):
        refuses(words, translator.score, yaml.safe_load(pairs))


MODELS = """
. => {} => is a folder ... name the model file in it
none => {} => no such file
[] => {} => expected a model file ... empty list
none => {device: gpu} => 'auto', 'cpu' or 'cuda' ... 'gpu'
none => {pretokenized: "no"} => pretokenized: ... boolean
"""


def test_what_cannot_be_loaded() -> None:
    for path, settings, words in rows(MODELS):
        stated = yaml.safe_load(settings)
        refuses(words, Translator.load, yaml.safe_load(path), **stated)


def test_a_pickle_of_other_files_is_refused(model: Path, tmp_path: Path) -> None:
    files = [Path(shutil.copy(model, tmp_path / name)) for name in ("a", "b")]
    loaded = Translator.load(files, device="cpu")
    pickled = pickle.dumps(loaded)
    changed = bytearray(files[1].read_bytes())
    changed[-1] ^= 1
    files[1].write_bytes(changed)
    message = refusal(pickle.loads, pickled)
    says(message, f"{files[1]}: not the same file as when the Translator was")
    refuses(f"{files[1]}: was changed since it was loaded", pickle.dumps, loaded)
    files[1].unlink()
    for _ in range(2):
        refuses(f"{files[1]}: no such file here", pickle.loads, pickled)
        files[1].mkdir(exist_ok=True)


def test_what_a_model_has_not(recurrent: Path, sharp: Path) -> None:
    without_attention = Translator.load(str(recurrent), device="cpu")
    (found,) = without_attention.translate(ONE)
    assert found.alignment is None
    message = refusal(without_attention.translate, ONE, attention=True)
    says(message, "attention: none of the models has attention")
    of_tokens = Translator.load(sharp, device="cpu", pretokenized=True)
    message = refusal(of_tokens.translate, ONE, split_sentences=True)
    says(message, "split_sentences: can split raw text")


def test_a_model_that_was_replaced_is_not_taken_for_the_one_in_memory(
    model: Path, sharp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copy = Path(shutil.copy(sharp, "model.safetensors"))
    own = Translator.load(copy, device="cpu")
    moved = Translator.load(copy, device="cpu")
    monkeypatch.chdir("/")
    moved.translate(ONE, attention=True)  # finds the file where it was loaded
    shutil.copy(model, tmp_path / copy)
    refuses("was changed since it was loaded", own.score, [("w1", "w1")])
    refuses("was changed since it was loaded", own.translate, ONE, attention=True)
    monkeypatch.setattr("convs2s.decoding.inspection.load_weights", None)
    moved.translate(ONE, attention=True)  # has read it
