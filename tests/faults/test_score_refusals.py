"""Wrong translations, references, lists and metrics: what scoring says of them."""

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import compress

import numpy as np
import pytest

from convs2s.cli.main import main
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import export_extensions
from convs2s.config.load import load
from convs2s.config.messages import validated
from convs2s.files.text import write_lines
from convs2s.scoring import bleu
from convs2s.scoring.bleu import (
    chrf,
    compare,
    corpus_bleu,
    decode_statistics,
    encode_statistics,
    length_ratio,
)
from convs2s.scoring.comparison import compare_outputs
from convs2s.scoring.evaluation import BleuEvaluation, RougeEvaluation, further_score
from convs2s.scoring.n_best import ListedHypothesis
from convs2s.scoring.reranking import curve
from convs2s.scoring.rouge import RougeOptions, rouge
from convs2s.scoring.translations import write_examples
from tests.support.refusals import refusal, says
from tests.support.score_files import decoded, report, scored_bleu, scored_rouge

TWO = ["a b", "c"]
ONE = ["a b"]
LISTED = ListedHypothesis(0, "a", "LM= 1", 0, (), "list:7")


def rouge_of(*texts: list[str]) -> object:
    return rouge(*texts, options=RougeOptions())


def outputs(*texts: list[str], source: list[str] | None = None) -> object:
    names = ("old", "new")
    return compare_outputs(*texts, form="tokenized", names=names, most=1, source=source)


@pytest.mark.parametrize("metric", [corpus_bleu, chrf, length_ratio, rouge_of])
def test_texts_of_unequal_number(metric: Callable[..., object]) -> None:
    says(refusal(metric, TWO, ONE), "hypotheses: 2 lines", "the reference has 1")
    says(refusal(metric, TWO, TWO, [*TWO, "x"]), "2 lines, but reference 2 has 3")
    says(refusal(metric, [], []), "hypotheses: no lines to score")


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (lambda: compare(TWO, ONE, TWO), ["system: 1 lines", "reference has 2"]),
        (lambda: outputs(ONE, TWO, TWO), ["old: 1 lines"]),
        (lambda: outputs(TWO, TWO, TWO, source=ONE), ["new: 2", "the source has 1"]),
        (lambda: curve([[LISTED]], ONE, ONE, str), ["list:7: ", "'LogLikelihood= "]),
        (lambda: LISTED.with_feature("LM", 1), ["list:7: ", "choose another name"]),
    ],
)
def test_systems_and_features(refused: Callable[[], object], words: list[str]) -> None:
    says(refusal(refused), *words)


def test_a_tokenizer_whose_package_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bleu, "find_spec", lambda name: None)
    message = refusal(corpus_bleu, TWO, TWO, form="ja-mecab")
    says(message, "--tokenize ja-mecab: ", "'sacrebleu[ja]'", "--tokenize char")


FIELDS = "||| a ||| Model= -1 ||| -1"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], ["list: is empty", "an n-best list"]),
        ([f"0 {FIELDS}", "0 ||| a ||| LM= 1"], ["list:2: ", "Moses", "3 of the 4"]),
        ([f"x {FIELDS}"], ["list:1: ", "the sentence is not a number: 'x'"]),
        ([f"-1 {FIELDS}"], ["the sentence is not a number: '-1'"]),
        (["0 ||| a ||| LM= -1 ||| high"], ["the score is not a number: 'high'"]),
        (["0 ||| a ||| LM= -1 ||| nan"], ["the score is not a number: 'nan'"]),
        ([f"0 {FIELDS}", f"2 {FIELDS}"], ["list:2: ", "sentence 1", "sentence 2"]),
        (
            [f"0 {FIELDS}", f"1 {FIELDS}", f"0 {FIELDS}"],
            ["list:3: ", "1 or a later one"],
        ),
        (
            [f"0 {FIELDS}", f"1 {FIELDS}", f"2 {FIELDS}"],
            ["list: 3 lines", "reference has 2"],
        ),
    ],
)
def test_n_best_lists(tmp_path: Path, lines: list[str], words: list[str]) -> None:
    path = str(tmp_path / "list")
    reference = tmp_path / "reference"
    write_lines(path, lines)
    write_lines(reference, TWO)
    commands = [["score", "oracle", path, "--reference", str(reference)]]
    if "reference has 2" not in words:
        commands.append(["rerank", path])
    for command in commands:
        with pytest.raises(SystemExit) as error:
            main(command)
        says(str(error.value), *words)


def test_a_list_of_more_sentences_than_the_source(model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "source", TWO)
    write_lines(tmp_path / "list", (f"{number} {FIELDS}" for number in range(3)))
    files = ["--source", str(tmp_path / "source"), "--n-best", str(tmp_path / "list")]
    with pytest.raises(SystemExit) as error:
        main(["score-pairs", str(model), *files, "--feature", "A"])
    says(str(error.value), "list:3: sentence 2, but the source has 2 lines")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (decoded(3, "a"), ["lines:2: ", "line 2, found that of line 3"]),
        ({"line": 2}, ["lines:2: not a translation", "source", "decode"]),
        (7, ["lines:2: not a translation"]),
    ],
)
def test_translations(tmp_path: Path, second: Any, words: list[str]) -> None:
    lines = [decoded(1, "a"), second]
    says(refusal(scored_bleu, tmp_path, "bleu", lines), *words)
    assert not (tmp_path / "bleu").exists()


def test_a_reference_of_another_test_set(tmp_path: Path) -> None:
    message = refusal(scored_rouge, tmp_path, "rouge", references=[["a"] * 3, TWO])
    says(message, "lines: 3 lines", "reference1 has 2")
    write_lines(tmp_path / "lines", [json.dumps(decoded(1, "a"))])
    paths = (tmp_path / "lines", tmp_path / "reference1", tmp_path / "examples")
    says(refusal(write_examples, *paths), "lines: 1 lines", "reference1 has 2")


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"bytes": 75}, ["b: ROUGE: ", "bytes:75"]),
        ({"lead_words": 4}, ["b: words of the lead baseline: 4, but 3"]),
        ({"measure": "recall"}, ["b: measure: recall, but f1"]),
    ],
)
def test_runs_that_were_scored_differently(
    tmp_path: Path, stated: dict[str, Any], words: list[str]
) -> None:
    runs = {("test", "seed1"): scored_rouge(tmp_path, "a")}
    runs["test", "seed2"] = scored_rouge(tmp_path, "b", **stated)
    says(refusal(report, tmp_path, RougeEvaluation, runs), *words, "score again")
    assert not (tmp_path / "bleu.txt").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("version:2.", "version:1.", ["b: tokenized BLEU: ", "version:1."]),
        ('"before_replacement"', '"x"', ["b: not an evaluation", "before_replacement"]),
        ("{", "[", ["b: not an evaluation", "score again"]),
    ],
)
def test_evaluations(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    runs = {}
    for name in ("a", "b"):
        runs["test", name] = scored_bleu(tmp_path, name, [decoded(1, "a")])
    content = (tmp_path / "b").read_text("utf-8")
    (tmp_path / "b").write_text(content.replace(old, new), "utf-8")
    says(refusal(report, tmp_path, BleuEvaluation, runs), *words)


MATCHES = encode_statistics(np.array([[2, 2, 2, 1, 0, 0], [2, 2, 2, 2, 0, 0]]))


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (b"no base64!", "not encoded statistics"),
        ("é".encode(), "not encoded statistics"),
        (b64encode(b"not compressed"), "not encoded statistics"),
        (b64encode(compress(b"")), "not encoded statistics"),
        (b64encode(compress(bytes(23))), "not encoded statistics"),
        (b64encode(compress(bytes(24)))[:-8], "not encoded statistics"),
        # More lines than are read.
        (b64encode(compress(bytes(24 * 11))), "not encoded statistics"),
        (MATCHES.encode(), "sentence 2 has more matching n-grams than"),
    ],
)
def test_statistics(packed: bytes, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bleu, "MOST_LINES", 10)
    says(refusal(decode_statistics, packed.decode(), "ledger:3"), "ledger:3: ", words)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("lambda a, b: float('nan')", ["metric own: ", "a finite number", "nan"]),
        ("lambda a, b: '3'", ["metric own: ", "a finite number"]),
        ("lambda a, b: True", ["metric own: ", "a finite number", "True"]),
        ("lambda a, b: Score(float('inf'), 'x')", ["a finite number", "inf"]),
        ("lambda a, b: 1 / 0", ["own.py:3: ", "ZeroDivisionError"]),
        ("math.exp", ["metric own: TypeError: "]),
        ("max", ["metric own: ValueError: no signature found"]),
        ("lambda a, b, source: 1", ["metric own: needs the source", "--source"]),
    ],
)
def test_metrics_of_the_users_own(
    tmp_path: Path, metric: str, words: list[str]
) -> None:
    (tmp_path / "own.py").write_text(
        "import math\nfrom convs2s.scoring.bleu import Score\n"
        f"METRICS = {{'own': {metric}}}\n"
    )
    export_extensions(["own.py"], tmp_path)
    says(refusal(further_score, "own", ["a"], ["a"], source=None), *words)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("high", "not 'high'"),
        (-1, "at least 0, not -1"),
        ({}, "key 'tuned_on' is missing"),
        ({"tuned_on": "valid", "step": 1}, "unknown key 'step'"),
    ],
)
def test_a_length_penalty_that_is_none(value: object, words: str) -> None:
    message = refusal(validated, DecodingSettings, {"length_penalty": value}, "here")
    says(message, "here: length_penalty: ", words)


def test_a_set_to_tune_on_that_the_task_has_not(copy: Path) -> None:
    path = copy / "config/decodings.yaml"
    text = path.read_text("utf-8")
    path.write_text(text.replace("tuned_on: newstest2015", "tuned_on: newstest2051"))
    settings = load(copy)
    message = refusal(settings.check_whole, settings.broken)
    says(message, "wmt14_en_de.yaml", "'beam5_en_de'", "newstest2051", "newstest2015")
