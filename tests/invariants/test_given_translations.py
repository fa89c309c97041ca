"""Rescoring: log-probabilities of given translations against full forward passes."""

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from convs2s.config.architecture import LstmArchitecture
from convs2s.data.vocabulary import END
from convs2s.decoding import rescoring
from convs2s.decoding.rescoring import (
    GivenTargets,
    LocatedLine,
    PairScore,
    PairScorer,
    log_probabilities,
    measure_perplexity,
    score_groups,
    score_pairs,
)
from convs2s.decoding.words import Form
from convs2s.errors import UserError
from convs2s.files.text import read_json, write_lines
from convs2s.model_file import load_model
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network
from convs2s.scoring.n_best import ListedHypothesis, read_n_best
from tests.support import tiny
from tests.support.memory import peak_memory
from tests.support.networks import batch, lstm, network
from tests.unit.conftest import Terminal

SENTENCES, HYPOTHESES = 20, 20


def sentence(generator: random.Random, mark: str = "") -> str:
    words = generator.choices([*tiny.WORDS, "unseen"], k=generator.randint(0, 9))
    return " ".join(f"{word}{mark}" for word in words)


@pytest.fixture(scope="module")
def sources() -> list[str]:
    generator = random.Random(1)
    return [sentence(generator) for _ in range(SENTENCES)]


@pytest.fixture(scope="module")
def listed() -> list[ListedHypothesis]:
    """A list of 20 hypotheses of each sentence, empty ones and unknown words among them."""
    generator = random.Random(2)
    return [
        ListedHypothesis(
            number, sentence(generator, "x"), "LM= -3 TM= -1 -2", -generator.random()
        )
        for number in range(SENTENCES)
        for _ in range(HYPOTHESES)
    ]


def write_list(path: Path, hypotheses: Sequence[ListedHypothesis]) -> Path:
    write_lines(path, (one.line() for one in hypotheses))
    return path


read_model = cache(load_model)


def full_pass(path: Path, source: str, *targets: str) -> list[torch.Tensor]:
    """The probability of each token of each target, by a pass over whole sentences.

    None of what decodes or scores has a part in it.
    """
    net, description = read_model(path)
    vocabulary = description.vocabularies()[1]
    tokens = [torch.tensor(vocabulary.encode(target.split())) for target in targets]
    rows = pad_sequence(tokens, batch_first=True)  # (K, n)
    previous = torch.cat([torch.full((len(rows), 1), END), rows[:, :-1]], 1)
    words = torch.tensor(description.vocabularies()[0].encode(source.split()))
    with torch.no_grad():
        logits, _ = net(words.expand(len(rows), -1), previous)
    probabilities = logits.double().softmax(2).gather(2, rows.unsqueeze(2)).squeeze(2)
    return [row[: len(one)] for row, one in zip(probabilities, tokens, strict=True)]


# ---- scores ----


@pytest.mark.parametrize("kinds", [["model"], ["recurrent"], ["model", "recurrent"]])
def test_scores_equal_a_full_forward_pass(
    run: Terminal,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    sources: list[str],
    listed: list[ListedHypothesis],
    kinds: list[str],
) -> None:
    paths = [request.getfixturevalue(kind) for kind in kinds]
    write_lines(tmp_path / "source", sources)
    n_best = write_list(tmp_path / "list", listed)
    files = ("--source", tmp_path / "source", "--n-best", n_best)
    printed = run(
        "score-pairs", *paths, *files, "--pretokenized", "--threads", 1
    ).splitlines()
    found = [one for group in read_n_best(printed, "printed") for one in group]
    assert [one.text for one in found] == [one.text for one in listed]
    assert len(found) == SENTENCES * HYPOTHESES
    for one, given in zip(found, listed, strict=True):
        assert one.score == pytest.approx(given.score, rel=1e-8)
        assert one.features.split(" Model=")[0] == given.features
    for number, source in enumerate(sources):
        of_source = [one for one in found if one.sentence == number]
        each = [
            full_pass(path, source, *(one.text for one in of_source)) for path in paths
        ]
        for one, *probabilities in zip(of_source, *each, strict=True):
            # an ensemble's probabilities are averaged
            expected = float(torch.stack(probabilities).mean(0).log().sum())
            assert one.feature("Model") == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("make", [network, lstm])
def test_scores_are_those_of_a_full_pass_in_float64(
    make: Callable[[], Network],
) -> None:
    model = make()
    source, targets = batch(7, 3), batch(5, 2, 9, 4).view(2, 2, -1)
    with torch.no_grad():
        for row, of_row in enumerate(targets):
            for column, padded in enumerate(of_row):
                target = padded[padded != 0]
                previous = torch.cat([torch.tensor([END]), target[:-1]])
                logits, _ = model.eval()(source[row : row + 1], previous.unsqueeze(0))
                steps = logits[0].log_softmax(1).gather(1, target.unsqueeze(1))
                found = log_probabilities(Ensemble([model]), source, targets)[
                    row, column
                ]
                torch.testing.assert_close(found, steps.sum(), atol=1e-9, rtol=0)


def test_a_score_is_divided_by_a_power_of_the_length() -> None:
    assert PairScore(-6.0, 4).normalized(0.5) == -3.0


def test_scores_do_not_depend_on_what_is_scored_together(
    model: Path,
    sources: list[str],
    listed: list[ListedHypothesis],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the last bit."""
    scorer = PairScorer.load([model], "cpu", "tokens")

    def scores(rows: list[ListedHypothesis]) -> list[float]:
        groups = read_n_best((one.line() for one in rows), "list")
        found = score_groups(scorer, sources, groups, "Model", 0.0)
        return [one.feature("Model") for one in found]

    lists = [listed[i * HYPOTHESES : (i + 1) * HYPOTHESES] for i in range(8)]
    alone = scores(lists[0][:1])
    for others in (1, 2, 3, HYPOTHESES):
        beside = [row for rows in lists[1:] for row in rows[:others]]
        assert scores([lists[0][0], *beside])[:1] == alone
        several = scores([*lists[0], *beside])[:HYPOTHESES]
        assert several == scores(lists[0])
        assert several[:3] == scores(lists[0][:3])
    whole = listed[: 8 * HYPOTHESES]
    together = scores(whole)
    for name, value in (
        ("TARGETS_PER_CHUNK", 1),
        ("TARGETS_PER_BATCH", 1),
        ("TARGETS_PER_UNIT", 2),
    ):
        monkeypatch.setattr(rescoring, name, value)
        assert scores(whole) == together


def test_scores_of_several_threads_do_not_depend_on_what_is_scored_together(
    model: Path, sources: list[str]
) -> None:
    """Two threads that shared a product would round one row alone as no row of several."""
    _, description = load_model(model)
    torch.manual_seed(1)
    wide = LstmArchitecture(
        kind="lstm", layers=2, cells=256, embedding=256, initialization=0.2
    )
    network = build_network(wide, *description.sizes).eval()
    scorer = PairScorer(Ensemble([network]), description, "cpu", "tokens")
    pairs = [
        GivenTargets(
            LocatedLine(source, "pairs:1"),
            [LocatedLine(source.replace(" ", "x "), "pairs:1")],
        )
        for source in sources * 4
    ]
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        together = list(scorer.score(pairs))
        alone = [next(scorer.score([pair])) for pair in pairs[:SENTENCES]]
        assert alone == together[:SENTENCES]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("targets", [1, 2, 3, 5])
def test_the_padding_of_a_batch_counts(targets: int) -> None:
    unit = rescoring._Unit([3], {(0, index): [3] for index in range(targets)})
    batches = rescoring._batches([unit] * 600)
    rows = [len(batch) * max(4 * (targets > 1), targets) for batch in batches]
    assert max(rows) <= rescoring.TARGETS_PER_BATCH < max(rows) + max(4, targets)


def test_pairs_are_scored_line_by_line(
    run: Terminal, model: Path, tmp_path: Path
) -> None:
    pairs = [("w1 w2", "w2x w1x"), ("w3", ""), ("", "w1x")]
    for side, lines in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        write_lines(tmp_path / side, lines)
    files = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    header, *rows = run("score-pairs", model, *files, "--threads", 1).splitlines()
    assert header == "log_probability\ttokens"
    for row, (source, target) in zip(rows, pairs, strict=True):
        score, tokens = row.split("\t")
        assert int(tokens) == len(target.split()) + 1
        expected = float(full_pass(model, source, target)[0].log().sum())
        assert float(score) == pytest.approx(expected, abs=1e-4)
    write_lines(tmp_path / "target", ["w2x"])
    with pytest.raises(SystemExit, match=r"source has 3 lines but .*target has 1"):
        run("score-pairs", model, *files)


def test_perplexity_is_by_token_and_ends_and_unknown_words_count(
    recurrent: Path, tmp_path: Path
) -> None:
    pairs = [("w1 w2", "w2x unseen"), ("w3", ""), ("w4 unseen w1", "w1x w4x w2x")]
    for side, lines in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        write_lines(tmp_path / side, lines)
    measure_perplexity(
        models=[recurrent],
        source=tmp_path / "source",
        target=tmp_path / "target",
        output=tmp_path / "perplexity.json",
        device="cpu",
        threads=1,
        manifest={"run": "seed1"},
    )
    measured = read_json(tmp_path / "perplexity.json")
    assert isinstance(measured, dict)
    assert (measured["lines"], measured["manifest"]) == (3, {"run": "seed1"})
    tokens = torch.cat([full_pass(recurrent, *pair)[0] for pair in pairs])
    assert measured["perplexity"]["signature"] == f"{len(tokens)} tokens"
    expected = float(tokens.log().mean().neg().exp())
    assert measured["perplexity"]["score"] == pytest.approx(expected, rel=1e-5)


def test_a_model_agrees_with_its_own_search(
    run: Terminal, model: Path, tmp_path: Path
) -> None:
    write_lines(tmp_path / "source", ["w1 w2 w3", "", "w4"])
    source = ("--source", tmp_path / "source")
    text = (tmp_path / "source").read_bytes()
    options = ("--pretokenized", "--threads", 1)
    write_lines(
        tmp_path / "list",
        run("translate", model, "--n-best", 5, *options, text=text).splitlines()[:-1],
    )
    rows = run("score-pairs", model, *source, "--n-best", tmp_path / "list", *options)
    for group in read_n_best(rows.splitlines(), "scored"):
        for one in group:
            if one.text:  # an empty line is not searched for
                likelihood = one.feature("LogLikelihood")
                assert one.feature("Model") == pytest.approx(likelihood, abs=1e-4)
                assert one.feature("Length") == len(one.text.split()) + 1


def test_the_form_of_the_text(run: Terminal, model: Path, tmp_path: Path) -> None:
    """Raw text is prepared, and its bars are bars; words are taken as they stand."""
    write_lines(tmp_path / "source", ["w1,"])
    row = "0 ||| w1x, &#124; ||| A= 1 ||| -1"
    write_lines(tmp_path / "list", [row])
    files = (
        "--source",
        tmp_path / "source",
        "--n-best",
        tmp_path / "list",
        "--threads",
        1,
    )
    raw, words = (
        run("score-pairs", model, *files),
        run("score-pairs", model, *files, "--tokenized"),
    )
    for printed, (source, target) in (
        (raw, ("w1 ,", "w1x , |")),
        (words, ("w1,", "w1x, &#124;")),
    ):
        (group,) = read_n_best([printed.rstrip("\n")], "printed")
        expected = float(full_pass(model, source, target)[0].log().sum())
        assert group[0].feature("Model") == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"splittable": ["w1"]},
            r"its BPE has a frequency threshold \(vocabulary\.threshold\)",
        ),
        (
            {"target_types": ["other", "types"]},
            "its source's BPE codes do not make 2 of 2 of its target's types",
        ),
    ],
)
def test_targets_that_are_split_in_a_way_of_their_own_are_refused(
    model: Path, changes: dict[str, Any], why: str
) -> None:
    _, description = load_model(model)
    known = description.model_copy(
        update={"bpe_codes": "#version: 0.2\nw 1\n", **changes}
    )
    ensemble = Ensemble([lstm()])
    forms: list[Form] = ["raw", "words"]
    for form in forms:
        with pytest.raises(
            UserError, match=f"^tiny: {why}, and a model file does not say how"
        ):
            PairScorer(ensemble, known, "cpu", form)
    assert PairScorer(ensemble, known, "cpu", "tokens").form == "tokens"


def test_lines_are_scored_up_to_the_models_positions(model: Path) -> None:
    target = " ".join(["w1x"] * 15)
    scorer = PairScorer.load([model], "cpu", "tokens")
    line = LocatedLine(target, "pairs:1")
    ((score,),) = scorer.score([GivenTargets(line, [line])])
    expected = float(full_pass(model, target, target)[0].log().sum())
    assert score.log_probability == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("side", "pair"), [("source", ("w1 " * 16, "w1x")), ("target", ("w1", "w1x " * 16))]
)
def test_an_overlong_line_is_not_scored(
    model: Path, side: str, pair: tuple[str, str]
) -> None:
    scorer = PairScorer.load([model], "cpu", "tokens")
    said = f"the {side} has 16 tokens, but the model scores at most 15; .*w1"
    with pytest.raises(UserError, match=f"^{side}.txt:2: {said}"):
        list(score_pairs(scorer, [("w1", "w1x"), pair], "source.txt", "target.txt"))
    with pytest.raises(UserError, match=f"^pairs:2: {said}"):
        list(score_pairs(scorer, [("w1", "w1x"), pair]))


def test_an_overlong_hypothesis_is_named_by_its_line(model: Path) -> None:
    rows = [
        f"{number} ||| {text} ||| ||| 0"
        for number, text in ((0, "w1x"), (4, "w1x " * 16))
    ]
    scored = score_groups(
        PairScorer.load([model], "cpu", "tokens"),
        ["w1"] * 5,
        read_n_best(rows, "list"),
        "Model",
        0.0,
    )
    with pytest.raises(UserError, match=r"^list:2: the target has 16 tokens"):
        list(scored)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["--target", "--n-best"])
def test_memory_does_not_grow_with_the_files(
    model: Path, tmp_path: Path, kind: str
) -> None:
    peaks = []
    for lines in (20_000, 200_000):
        write_lines(tmp_path / "source", ("w1 w2" for _ in range(lines)))
        rows = (f"{i} ||| w2x w1x ||| A= 1 ||| -1" for i in range(lines))
        write_lines(
            tmp_path / "list", rows if kind == "--n-best" else ("w2x" for _ in rows)
        )
        files = ("--source", tmp_path / "source", kind, tmp_path / "list")
        peaks.append(
            peak_memory("score-pairs", model, *files, "--pretokenized", "--threads", 1)
        )
    assert peaks[1] < 1.1 * peaks[0]
