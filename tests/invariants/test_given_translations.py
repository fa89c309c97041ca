"""Log-probabilities of given translations: those of full passes, whatever is scored together."""

import math
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding import rescoring
from convs2s.decoding.rescoring import (
    PairScorer,
    list_n_best,
    log_probabilities,
    measure_perplexity,
    score_groups,
)
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_json, read_lines, write_lines
from convs2s.model_file import load_model
from convs2s.models.ensemble import Ensemble
from convs2s.scoring.n_best import read_n_best
from convs2s.scoring.reranking import by_length_penalty
from tests.conftest import Terminal
from tests.support import tiny
from tests.support.golden import TRAINED, golden_lines, import_trained

generator = random.Random(1)


def sentence(mark: str = "") -> str:
    words = generator.choices([*tiny.WORDS, "unseen"], k=generator.randint(0, 9))
    return " ".join(f"{word}{mark}" for word in words)


SOURCES = [sentence() for _ in range(20)]
LISTED = [
    [f"{number} ||| {sentence('x')} ||| LM= -3 TM= -1 -2 ||| -0.5" for _ in range(20)]
    for number in range(len(SOURCES))
]
"""20 hypotheses of each sentence, empty ones and unknown words among them."""

Scoring = Callable[..., list[str]]

read_model = cache(load_model)


def alone(source: str, target: str, *paths: Path) -> float:
    """The log-probability of a target by itself: that of a full pass (test_decoding.py)."""
    models = [read_model(path) for path in paths]
    ours, theirs = models[0][1].vocabularies()
    given = torch.tensor([ours.encode(source.split())])
    tokens = torch.tensor([[theirs.encode(target.split())]])
    ensemble = Ensemble([network for network, _ in models])
    return float(log_probabilities(ensemble, given, tokens))


def near(score: float) -> object:
    return pytest.approx(score, abs=1e-4)


@pytest.fixture
def score_pairs(run: Terminal, tmp_path: Path) -> Scoring:
    """Write the files of the options, and return the lines that the command prints."""

    def printed(*arguments: object, **files: list[str]) -> list[str]:
        given: list[object] = []
        for name, lines in files.items():
            write_lines(tmp_path / name, lines)
            given += [f"--{name}", tmp_path / name]
        return run("score-pairs", *arguments, *given, "--threads", 1).splitlines()

    return printed


# ---- against the same alone ----


def test_a_list_is_scored_by_an_ensemble(
    score_pairs: Scoring, model: Path, recurrent: Path
) -> None:
    files = {"source": SOURCES, "n-best": [row for rows in LISTED for row in rows]}
    printed = score_pairs(model, recurrent, "--pretokenized", **files)
    for group, rows in zip(read_n_best(printed, "printed"), LISTED, strict=True):
        for one, row in zip(group, rows, strict=True):
            number, text, features, _ = row.split(" ||| ")
            assert (one.text, one.score) == (text.strip(), -0.5)
            assert one.features.split(" Model=")[0] == features
            expected = alone(SOURCES[int(number)], text, model, recurrent)
            assert one.feature("Model") == near(expected)


def test_pairs_are_scored_line_by_line(score_pairs: Scoring, model: Path) -> None:
    pairs = [("w1 w2", "w2x w1x"), ("w3", ""), ("", "w1x"), ("w1 " * 15, "w1x " * 15)]
    source, target = map(list, zip(*pairs, strict=True))
    header, *rows = score_pairs(model, source=source, target=target)
    assert header == "log_probability\ttokens"
    for row, pair in zip(rows, pairs, strict=True):
        score, tokens = row.split("\t")
        assert int(tokens) == len(pair[1].split()) + 1
        assert float(score) == near(alone(*pair, model))


def test_perplexity_is_by_token_and_ends_and_unknown_words_count(
    recurrent: Path, tmp_path: Path
) -> None:
    source, target, output = (tmp_path / name for name in ("a", "b", "c"))
    write_lines(source, ["w1 w2", "w3"])
    write_lines(target, ["w2x unseen", ""])
    measure_perplexity(
        models=[recurrent],
        source=source,
        target=target,
        output=output,
        device="cpu",
        threads=1,
        manifest={"run": "seed1"},
    )
    found: Any = read_json(output)
    total = alone("w1 w2", "w2x unseen", recurrent) + alone("w3", "", recurrent)
    score = found["perplexity"].pop("score")
    assert -4 * math.log(score) == near(total)
    assert found == {
        "lines": 2,
        "perplexity": {"signature": "4 tokens"},
        "manifest": {"run": "seed1"},
    }


def test_raw_text_is_prepared_and_words_are_taken_as_they_stand(
    score_pairs: Scoring, model: Path
) -> None:
    files = {"source": ["w1,"], "n-best": ["0 ||| w1x, &#124; ||| A= 1 ||| -1"]}
    for options, pair in (
        ([], ("w1 ,", "w1x , |")),
        (["--tokenized"], ("w1,", "w1x, &#124;")),
    ):
        printed = score_pairs(model, *options, **files)
        ((one,),) = read_n_best(printed, "printed")
        assert one.feature("Model") == near(alone(*pair, model))


# ---- what else is scored ----


def test_scores_do_not_depend_on_what_is_scored_together(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit."""
    scorer = PairScorer.load([model], "cpu", "tokens")

    def scores(rows: list[str]) -> list[float]:
        groups = read_n_best(rows, "list")
        found = score_groups(scorer, SOURCES, groups, "Model", 0.0)
        return [one.feature("Model") for one in found]

    assert scores(LISTED[0][:3]) == scores(LISTED[0])[:3]
    counts = (1, 20, 3, 2, 20, 1, 7, 20)
    lists = [rows[:count] for rows, count in zip(LISTED[:8], counts, strict=True)]
    alone = [score for rows in lists for score in scores(rows)]
    together = [row for rows in lists for row in rows]
    assert scores(together) == alone
    rows = LISTED[0] + LISTED[1]
    whole = scores(rows)
    for name in ("TARGETS_PER_CHUNK", "TARGETS_PER_BATCH", "TARGETS_PER_UNIT"):
        monkeypatch.setattr(rescoring, name, 2)
        assert scores(rows) == whole


# ---- lists that a search writes ----


@pytest.mark.parametrize("finished", ["replace", "leave"])
def test_one_list_holds_what_a_search_with_any_length_penalty_answers(
    tmp_path: Path, finished: Any
) -> None:
    model = import_trained(tmp_path)
    lines = golden_lines(TRAINED, "test200.bpe.en")[:30]
    write_lines(tmp_path / "source", lines)
    answers: list[list[str]] = []
    for alpha in (1.0, 0.0, 0.5, 2.0):
        settings = DecodingSettings(beam=4, finished=finished, length_penalty=alpha)
        translator = LineTranslator([model], settings, "cpu", pretokenized=True)
        if not answers:
            output = tmp_path / "list"
            list_n_best(translator, source=tmp_path / "source", output=output)
            groups = list(read_n_best(read_lines(output), "list"))
        found = [" ".join(one.words) for one in translator.translate(lines)]
        best = [max(group, key=by_length_penalty(alpha)) for group in groups]
        assert [one.text for one in best] == found
        answers.append(found)
    assert any(answer != answers[0] for answer in answers)  # the value matters here
    assert all(max(group, key=lambda one: one.score) == group[0] for group in groups)
