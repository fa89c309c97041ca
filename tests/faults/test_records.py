"""Records that jobs leave for each other, damaged: one line that names the file."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.config.identity import read_training_settings, training_settings
from convs2s.data.vocabulary import read_vocabulary
from convs2s.errors import UserError
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.files.text import read_lines
from convs2s.paper.attention_maps import read_example
from convs2s.paper.phrase_map import read_phrase_map
from convs2s.paper.report.write import read_claims
from convs2s.paper.trained import read_training
from convs2s.scoring.n_best import read_n_best
from convs2s.scoring.translations import read_translations
from convs2s.scoring.tuned_settings import tuned_decoding
from convs2s.text.bpe import read_codes
from convs2s.text.corpus_filter import read_report
from convs2s.training.history import read_history
from convs2s.training.state_folder import StateFolder
from tests.support import tiny

DEEP = "[" * 5000
NO_BATCH = json.dumps(training_settings(tiny.settings())).replace(
    '"sentences": 16', '"sentences": null'
)
TUNED = {"length_penalty": {"tuned_on": "valid"}}
EPOCH = {
    "epoch": 1,
    "updates": 2,
    "learning_rate": 0.25,
    "train_loss": 3.0,
    "valid_loss": 3.0,
    "valid_perplexity": 20.0,
    "tokens": 10**400,
    "tokens_per_second": 1,
}


def read_list(path: Path) -> object:
    return list(read_n_best(read_lines(path), str(path)))


def read_tuning(path: Path) -> object:
    return tuned_decoding(TUNED, [str(path)])


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_history, DEEP, "f:1: not an epoch of a training's history"),
        (read_history, "null", "f:1: not an epoch of a training's history"),
        (read_history, '{"epoch": 1}', "f:1: not an epoch of a training's history"),
        (read_history, json.dumps(EPOCH), "f:1: not an epoch of a training's history"),
        (
            read_history,
            json.dumps(EPOCH | {"tokens": 1 << 63}),
            "f:1: not an epoch of a training's",
        ),
        (
            read_history,
            json.dumps(EPOCH | {"tokens": -1}),
            "f:1: not an epoch of a training's history",
        ),
        (read_report, "{", "f: no report of a corpus filter"),
        (
            read_report,
            '{"read": 1, "kept": -1, "dropped": {}, "settings": ""}',
            "f: no report of a corpus filter",
        ),
        (
            read_report,
            '{"read": 1, "kept": 1, "dropped": {"x": 1}, "settings": ""}',
            "f: no report of a corpus",
        ),
        (read_example, "{}", "f: not the attention on an example"),
        (read_phrase_map, DEEP, "f: not a map of phrases"),
        (read_claims, '{"claims": [{"findings": [1]}]}', "f: not a list of claims"),
        (read_translations, DEEP, "f:1: not a translation"),
        (
            read_list,
            f"{'9' * 5000} ||| a ||| b ||| 1",
            "f:1: expected .*; the sentence is",
        ),
        (
            read_codes,
            "#version: :\na b\n",
            "f:1: expected '#version: 0.1' or '#version: 0.2'",
        ),
        (
            read_codes,
            "#version: 1.0\na b\n",
            "f:1: expected '#version: 0.1' or '#version: 0.2'",
        ),
        (read_codes, "a\udcff b\n", "f:1: not UTF-8"),
        (read_codes, "a b c\n", "f:1: expected two tokens"),
        (
            read_vocabulary,
            "type\tcount\na\t1\na\t2\n",
            "f: a type occurs twice in the vocab",
        ),
        (
            read_training_settings,
            '{"training": {}}',
            "f: key 'architecture' is missing",
        ),
        (
            read_training_settings,
            NO_BATCH,
            r"f: training: expected a number of",
        ),
        (read_tuning, "{}", "f: not a tuning of a length penalty"),
        (read_tuning, '{"length_penalty": NaN}', "f: not a tuning of a length penalty"),
        (
            read_tuning,
            '{"length_penalty": -0.5}',
            "f: not a tuning of a length penalty",
        ),
    ],
)
def test_a_damaged_record_is_named(
    tmp_path: Path, read: Callable[[Path], object], content: str, message: str
) -> None:
    path = tmp_path / "f"
    path.write_text(content, "utf-8", "surrogateescape")
    with pytest.raises(UserError, match=message):
        read(path)


@pytest.mark.parametrize("tokens", [0, (1 << 63) - 1])
def test_a_count_of_any_size_is_read(tmp_path: Path, tokens: int) -> None:
    path = tmp_path / "f"
    path.write_text(json.dumps(EPOCH | {"tokens": tokens}))
    assert read_history(path).epochs[0].tokens == tokens


@pytest.mark.parametrize("manifest", [None, [], {"workers": "x"}, {"threads": 10**30}])
def test_a_damaged_record_of_a_training_is_named(
    tmp_path: Path, manifest: object
) -> None:
    (tmp_path / "training.json").write_text(json.dumps({"manifest": manifest}))
    with pytest.raises(
        UserError, match=r"training\.json: not the record of a training"
    ):
        read_training("task", "model", "seed1", tmp_path)


def test_a_damaged_identity_of_another_training_stops_none(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for content in ("{", DEEP, "[]"):
        (other / "identity.json").write_text(content)
        (line,) = StateFolder(tmp_path, {"seed": 1}).differences()
        assert "identity.json: not an identity of a training" in line


@pytest.mark.parametrize("word", ["\r", "\x1b[2J", "\u2028", "\ud800", "\x85"])
def test_what_a_message_quotes_cannot_end_its_line(word: str) -> None:
    message = str(UserError(f"a.txt:1: expected a word, found {word}"))
    assert message.isprintable()
    assert str(UserError(message)) == message


def test_a_description_may_state_what_is_no_character(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_tensors(path, {}, {"word": "a"})
    path.write_bytes(path.read_bytes().replace(b'\\"a\\"', b'\\"\\\\ud800\\"'))
    with pytest.raises(UserError, match="m: "):
        load_tensors(path)
