"""Log-probabilities of given translations: those of full passes, whatever is scored together."""

import random
from functools import cache
from pathlib import Path

import pytest
import torch

from convs2s.data.vocabulary import END
from convs2s.decoding import rescoring
from convs2s.decoding.rescoring import PairScorer, measure_perplexity, score_groups
from convs2s.files.text import read_json, write_lines
from convs2s.model_file import load_model
from convs2s.scoring.n_best import read_n_best
from tests.conftest import Terminal
from tests.support import tiny

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

read_model = cache(load_model)


def full_pass(path: Path, source: str, target: str) -> torch.Tensor:
    """The probability of each token of a target, by a pass over whole sentences.

    None of what decodes or scores has a part in it.
    """
    net, description = read_model(path)
    sides = zip(description.vocabularies(), (source, target), strict=True)
    given, tokens = (torch.tensor([one.encode(text.split())]) for one, text in sides)
    previous = torch.cat([torch.tensor([[END]]), tokens[:, :-1]], 1)
    with torch.no_grad():
        logits, _ = net(given, previous)
    found: torch.Tensor = logits[0].double().softmax(1)
    return found.gather(1, tokens.view(-1, 1)).squeeze(1)


def expected(path: Path, source: str, target: str) -> object:
    total = float(full_pass(path, source, target).log().sum())
    return pytest.approx(total, abs=1e-4)


# ---- against full passes ----


@pytest.mark.parametrize("kinds", [["model"], ["recurrent"], ["model", "recurrent"]])
def test_scores_of_a_list_equal_a_full_forward_pass(
    run: Terminal, request: pytest.FixtureRequest, tmp_path: Path, kinds: list[str]
) -> None:
    paths = [request.getfixturevalue(kind) for kind in kinds]
    write_lines(tmp_path / "source", SOURCES)
    write_lines(tmp_path / "list", [row for rows in LISTED for row in rows])
    files = ("--source", tmp_path / "source", "--n-best", tmp_path / "list")
    options = ("--pretokenized", "--threads", 1)
    printed = run("score-pairs", *paths, *files, *options).splitlines()
    for group, rows in zip(read_n_best(printed, "printed"), LISTED, strict=True):
        for one, row in zip(group, rows, strict=True):
            _, text, features, _ = row.split(" ||| ")
            assert (one.text, one.score) == (text.strip(), -0.5)
            assert one.features.split(" Model=")[0] == features
            # an ensemble's probabilities are averaged
            each = [full_pass(path, SOURCES[one.sentence], text) for path in paths]
            total = float(torch.stack(each).mean(0).log().sum())
            assert one.feature("Model") == pytest.approx(total, abs=1e-4)


def write_pairs(folder: Path, pairs: list[tuple[str, str]]) -> tuple[Path, Path]:
    files = folder / "source", folder / "target"
    for file, lines in zip(files, zip(*pairs, strict=True), strict=True):
        write_lines(file, lines)
    return files


def test_pairs_are_scored_line_by_line(
    run: Terminal, model: Path, tmp_path: Path
) -> None:
    pairs = [("w1 w2", "w2x w1x"), ("w3", ""), ("", "w1x"), ("w1 " * 15, "w1x " * 15)]
    source, target = write_pairs(tmp_path, pairs)
    files = ("--source", source, "--target", target)
    header, *rows = run("score-pairs", model, *files, "--threads", 1).splitlines()
    assert header == "log_probability\ttokens"
    for row, pair in zip(rows, pairs, strict=True):
        score, tokens = row.split("\t")
        assert int(tokens) == len(pair[1].split()) + 1
        assert float(score) == expected(model, *pair)


def test_perplexity_is_by_token_and_ends_and_unknown_words_count(
    recurrent: Path, tmp_path: Path
) -> None:
    pairs = [("w1 w2", "w2x unseen"), ("w3", ""), ("w4 unseen w1", "w1x w4x w2x")]
    source, target = write_pairs(tmp_path, pairs)
    measure_perplexity(
        models=[recurrent],
        source=source,
        target=target,
        output=tmp_path / "perplexity.json",
        device="cpu",
        threads=1,
        manifest={"run": "seed1"},
    )
    tokens = torch.cat([full_pass(recurrent, *pair) for pair in pairs])
    score = float(tokens.log().mean().neg().exp())
    assert read_json(tmp_path / "perplexity.json") == {
        "lines": 3,
        "perplexity": {
            "score": pytest.approx(score, rel=1e-5),
            "signature": f"{len(tokens)} tokens",
        },
        "manifest": {"run": "seed1"},
    }


@pytest.mark.parametrize(
    ("options", "pair"),
    [((), ("w1 ,", "w1x , |")), (("--tokenized",), ("w1,", "w1x, &#124;"))],
)
def test_raw_text_is_prepared_and_words_are_taken_as_they_stand(
    run: Terminal,
    model: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    pair: tuple[str, str],
) -> None:
    write_lines(tmp_path / "source", ["w1,"])
    write_lines(tmp_path / "list", ["0 ||| w1x, &#124; ||| A= 1 ||| -1"])
    files = ("--source", tmp_path / "source", "--n-best", tmp_path / "list")
    printed = run("score-pairs", model, *files, "--threads", 1, *options)
    ((one,),) = read_n_best(printed.splitlines(), "printed")
    assert one.feature("Model") == expected(model, *pair)


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

    first, *rest = LISTED[:8]
    whole = scores(first)
    for count in (1, 2, 3, 20):
        others = [row for rows in rest for row in rows[:count]]
        for own in (1, 3, 20):
            assert scores([*first[:own], *others])[:own] == scores(first[:own])
    assert scores(first[:3]) == whole[:3]
    rows = [row for rows in LISTED[:8] for row in rows]
    together = scores(rows)
    for name, value in (
        ("TARGETS_PER_CHUNK", 1),
        ("TARGETS_PER_BATCH", 1),
        ("TARGETS_PER_UNIT", 2),
    ):
        monkeypatch.setattr(rescoring, name, value)
        assert scores(rows) == together
