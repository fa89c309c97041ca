"""The claims' verdicts: from planted scores, one test for each way that runs can be there."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convs2s.config.claims import CellName, Claim, row_index
from convs2s.config.load import load
from convs2s.config.messages import validated
from convs2s.config.settings import Settings
from convs2s.paper import claims
from convs2s.paper.cells import CellAddress
from convs2s.paper.claims import Finding, entries_by_cell, judge, verdict_of, write_claims
from convs2s.paper.ledger import LedgerEntry, RunNames, RunScore
from convs2s.paper.run_inputs import fingerprint_of
from convs2s.scoring.bleu import bleu_of, encode_statistics
from convs2s.scoring.significance import Effect

BASE, NO_SOURCE, NO_TARGET = "ConvS2S", "-source position", "-target position"
BEFORE = "bleu_tokenized_before_replacement"


@pytest.fixture(scope="module")
def demo(root: Path) -> Settings:
    return load(root, {"scale": "demo"})


@pytest.fixture(scope="module")
def paper(root: Path) -> Settings:
    return load(root, {"scale": "paper"})


def entries(
    settings: Settings,
    row: str,
    scores: Sequence[float],
    *,
    table: str = "table4",
    column: str = "bleu",
    measure: str = BEFORE,
    lines: int = 500,
    **names: str,
) -> list[LedgerEntry]:
    """A cell's entries of a ledger, seed1 first."""
    number = row_index(CellName(table=table, row=row), settings.paper, "here")
    testset = None if measure == "perplexity" else "test"
    run = RunNames("demo_en_fr_word", row, "", testset, decoding="beam5")
    return [
        LedgerEntry(
            fingerprint=fingerprint_of({}),
            file=f"{row}/seed{seed}",
            table_cells=(CellAddress(table, number, column),),
            run=replace(run, run=f"seed{seed}", **names),
            scale="demo",
            scores={measure: RunScore(score, "nrefs:1")},
            lines=lines,
            sha256={"model.safetensors": sha256(f"{names.get('model', row)} {seed}")},
            processor=None,
            revision=None,
            date="2026-01-01",
        )
        for seed, score in enumerate(scores, start=1)
    ]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def with_sentences(entry: LedgerEntry, share: float, seed: int) -> LedgerEntry:
    """An entry of a test set of which so large a share of words is right."""
    order = np.random.default_rng(seed)
    words = np.random.default_rng(0).integers(6, 20, 300)
    matches = [order.binomial(np.maximum(words - n, 0), share ** (n + 1)) for n in range(4)]
    statistics = np.stack([words, words, *matches], axis=1)
    scores = {BEFORE: RunScore(bleu_of(statistics), "nrefs:1")}
    return replace(entry, scores=scores, sentences={BEFORE: encode_statistics(statistics)})


def finding(settings: Settings, stated: Mapping[str, object], *found: list[LedgerEntry]) -> Finding:
    """What the one comparison or trend of a claim comes to, by these entries of a ledger."""
    claim = validated(Claim, {"says": "a claim", "source": "a paper", **stated}, "here")
    runs = entries_by_cell(entry for cell in found for entry in cell)
    (judged,) = judge(replace(settings, claims={"mine": claim}), runs)
    (result,) = judged.findings
    assert judged.verdict == result.verdict
    return result


def better(row: str, worse: str, margin: float = 0.0, column: str = "bleu") -> dict[str, object]:
    sides = {
        side: [{"table": "table4", "row": name, "column": column}]
        for side, name in (("better", row), ("worse", worse))
    }
    return {"comparisons": [{**sides, "margin": margin}]}


@pytest.mark.parametrize(
    ("base", "other", "verdict"),
    [
        ([21.6, 21.7, 21.8], [21.2, 21.3, 21.4], "held"),
        ([21.2, 21.3, 21.4], [21.6, 21.7, 21.8], "not held"),
        ([21.2, 21.6, 21.9], [21.1, 21.5, 21.9], "undecided"),
        ([21.6, 21.7], [20.0, 20.1], "held"),
    ],
)
def test_seeds_of_two_models(
    demo: Settings, base: list[float], other: list[float], verdict: str
) -> None:
    found = entries(demo, BASE, base), entries(demo, NO_SOURCE, other)
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert (result.verdict, result.test) == (verdict, claims.WELCH)
    assert result.value == pytest.approx(np.mean(base) - np.mean(other))
    assert result.printed == pytest.approx(0.4)
    assert result.runs == f"{len(base)} against {len(other)}"
    assert result.test_set == "demo_en_fr_word test (500 lines)"
    assert result.metric == "tokenized BLEU before unknown word replacement nrefs:1"


def test_of_the_same_models_the_differences_count(demo: Settings) -> None:
    """Two searches of three seeds that differ much more among each other."""
    scores = [20.0, 24.0, 28.0]
    found = (
        entries(
            demo, BASE, [score + gain for score, gain in zip(scores, (0.3, 0.4, 0.5), strict=True)]
        ),
        entries(demo, NO_SOURCE, scores, model=BASE),
    )
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert (result.verdict, result.test) == ("held", claims.SAME_MODELS)
    apart = finding(demo, better(BASE, NO_SOURCE), found[0], entries(demo, NO_SOURCE, scores))
    assert (apart.verdict, apart.test) == ("undecided", claims.WELCH)
    trained_again = [replace(entry, sha256={"model.safetensors": "another"}) for entry in found[1]]
    apart = finding(demo, better(BASE, NO_SOURCE), found[0], trained_again)
    assert (apart.verdict, apart.test) == ("undecided", claims.WELCH)


@pytest.mark.parametrize(
    ("margin", "verdict"), [(0.0, "not held"), (0.1, "not held"), (0.3, "undecided"), (1.0, "held")]
)
def test_a_margin_is_what_does_not_count(demo: Settings, margin: float, verdict: str) -> None:
    found = (
        entries(demo, NO_SOURCE, [21.20, 21.22, 21.24]),
        entries(demo, BASE, [21.50, 21.52, 21.54]),
    )
    assert finding(demo, better(NO_SOURCE, BASE, margin), *found).verdict == verdict


def test_of_perplexity_the_fall_counts(demo: Settings) -> None:
    found = [
        entries(demo, row, scores, column="ppl", measure="perplexity")
        for row, scores in ((BASE, [6.60, 6.61]), (NO_SOURCE, [6.70, 6.71]))
    ]
    result = finding(demo, better(BASE, NO_SOURCE, column="ppl"), *found)
    assert result.verdict == "held"
    assert result.value == pytest.approx(0.1)
    assert result.test_set is None


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.6, "held"), (0.78, "undecided"), (0.95, "not held")]
)
def test_one_run_a_side_is_tested_by_its_sentences(
    demo: Settings, share: float, verdict: str
) -> None:
    base, other = (entries(demo, row, [0.0])[0] for row in (BASE, NO_SOURCE))
    found = [with_sentences(base, 0.78, seed=1)], [with_sentences(other, share, seed=2)]
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert (result.verdict, result.test) == (verdict, claims.BOOTSTRAP)
    assert result.interval is not None
    assert result.value is not None
    assert result.interval[0] < result.value < result.interval[1]


def test_one_run_against_three_is_tested_by_sentences_too(demo: Settings) -> None:
    base = [with_sentences(one, 0.8, 3) for one in entries(demo, BASE, [0.0])]
    other = entries(demo, NO_SOURCE, [0.0] * 3)
    found = base, [with_sentences(one, 0.6, seed) for seed, one in enumerate(other)]
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert (result.verdict, result.runs) == ("held", "1 against 3")


def test_one_run_whose_sentences_are_not_known_decides_nothing(demo: Settings) -> None:
    found = entries(demo, BASE, [25.0]), entries(demo, NO_SOURCE, [15.0])
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert (result.verdict, result.value, result.p) == ("undecided", 10.0, None)
    assert result.note == "one run alone, and its sentences are not known: its chance is not"


def test_a_gain_is_held_against_another(demo: Settings) -> None:
    names = [{"table": "table4", "row": row} for row in (BASE, NO_SOURCE, NO_TARGET)]
    stated = {"comparisons": [{"better": [names[0]] * 2, "worse": names[1:]}]}
    found = [
        entries(demo, row, [score, score + 0.1])
        for row, score in ((BASE, 21.0), (NO_SOURCE, 19.0), (NO_TARGET, 20.0))
    ]
    result = finding(demo, stated, *found)
    assert result.verdict == "held"
    assert result.value == pytest.approx(3.0)
    assert result.runs == "2 + 2 against 2 + 2"


def test_a_side_without_a_score_is_named(demo: Settings, paper: Settings) -> None:
    result = finding(demo, better(BASE, NO_SOURCE), entries(demo, BASE, [21.0, 21.1]))
    assert (result.verdict, result.value) == ("not run", None)
    assert result.note == "table4 '-source position' BLEU: not run"
    cell = {"table": "figure2", "group": "encoder", "row": "2"}
    stated = {"comparisons": [{"better": [cell], "worse": [cell | {"row": "3"}]}]}
    left_out = finding(demo, stated).note
    cells = [f"figure2 encoder '{row}'" for row in "23"]
    assert left_out == "; ".join(f"{cell}: left out at this scale" for cell in cells)
    assert finding(paper, stated).note == "; ".join(f"{cell}: not run" for cell in cells)


@pytest.mark.parametrize(("testset", "lines"), [("valid", 500), ("test", 499)])
def test_other_sentences_are_not_compared(demo: Settings, testset: str, lines: int) -> None:
    other = entries(demo, NO_SOURCE, [20.0, 20.1], testset=testset, lines=lines)
    found = entries(demo, BASE, [21.0, 21.1]), other
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert result.verdict == "not run"
    assert result.note is not None
    assert result.note.startswith("not of one kind: demo_en_fr test (500 lines), nrefs:1 against ")


def test_words_and_bpe_of_one_text_are_compared(demo: Settings) -> None:
    pieces = entries(demo, BASE, [21.0, 21.1], task="demo_en_fr")
    result = finding(demo, better(BASE, NO_SOURCE), pieces, entries(demo, NO_SOURCE, [20.0, 20.1]))
    assert result.verdict == "held"
    assert result.test_set == "demo_en_fr test (500 lines); demo_en_fr_word test (500 lines)"


def test_a_printed_value_counts_where_the_data_is_the_papers(
    demo: Settings, paper: Settings
) -> None:
    claim = {
        "comparisons": [
            {
                "better": [{"table": "lstm_table1", "row": "Single reversed LSTM, beam size 12"}],
                "worse": [{"table": "lstm_table1", "row": "Bahdanau et al."}],
            }
        ]
    }
    found = entries(
        paper,
        "Single reversed LSTM, beam size 12",
        [30.5, 30.7],
        table="lstm_table1",
        measure="bleu_tokenized",
        task="wmt14_en_fr_word",
    )
    result = finding(paper, claim, found)
    assert (result.verdict, result.runs) == ("held", "2 against printed")
    assert result.test == claims.WELCH  # nothing is there to be of the same models
    assert result.value == pytest.approx(30.6 - 28.45)
    assert "a printed value is of the paper's data" in (finding(demo, claim, found).note or "")


def trend_over(*rows: str) -> dict[str, object]:
    return {"trends": [{"table": "table5", "x": {row: float(len(row)) for row in rows}}]}


LAYERS = ("1", "1, 2", "1, 2, 3", "1, 2, 3, 4", "1, 2, 3, 4, 5")


@pytest.mark.parametrize(("sign", "verdict"), [(1, "held"), (-1, "not held")])
def test_a_trend(demo: Settings, sign: int, verdict: str) -> None:
    found = [
        entries(demo, row, [20 + sign * number], table="table5")
        for number, row in enumerate(LAYERS)
    ]
    result = finding(demo, trend_over(*LAYERS), *found)
    assert result.verdict == verdict
    assert result.value == pytest.approx(sign)
    assert (result.runs, result.test) == ("5 of 5 rows", claims.RANKS)
    some = finding(demo, trend_over(*LAYERS), *found[:4])
    assert (some.verdict, some.note) == ("undecided", "no score: '1, 2, 3, 4, 5'")
    few = finding(demo, trend_over(*LAYERS), *found[:3])
    assert few.verdict == "not run"
    assert few.note == "no score: '1, 2, 3, 4', '1, 2, 3, 4, 5'; 4 rows are needed"
    short = finding(demo, trend_over(*LAYERS[:3]), *found[:3])
    assert (short.verdict, short.note) == ("not run", "4 rows are needed")


def test_rows_and_not_their_runs_are_the_points_of_a_trend(demo: Settings) -> None:
    """Three runs of a row that resemble each other say no more of the rows' order than one."""
    heights = (20.0, 22.0, 21.0, 23.0, 22.5)
    once, thrice = (
        finding(
            demo,
            trend_over(*LAYERS),
            *(
                entries(demo, row, [height + 0.01 * one for one in range(runs)], table="table5")
                for row, height in zip(LAYERS, heights, strict=True)
            ),
        )
        for runs in (1, 3)
    )
    assert (once.verdict, once.value, once.p) == (
        thrice.verdict,
        thrice.value,
        thrice.p,
    )
    assert thrice.runs == "15 of 5 rows"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], "not run"),
        (["not run", "not run"], "not run"),
        (["held", "not run"], "held"),
        (["held", "undecided"], "undecided"),
        (["held", "undecided", "not held"], "not held"),
    ],
)
def test_a_claim_is_all_of_its_comparisons(verdicts: list[claims.Verdict], expected: str) -> None:
    assert verdict_of(verdicts) == expected


def test_all_formats_say_the_same(demo: Settings, tmp_path: Path) -> None:
    scored = [*entries(demo, BASE, [21.6, 21.7]), *entries(demo, NO_SOURCE, [21.0, 21.1])]
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text("".join(f"{entry.line()}\n" for entry in scored), encoding="utf-8")
    outputs = [tmp_path / f"claims.{end}" for end in ("md", "csv", "json")]
    write_claims(demo, ledger=ledger, outputs=outputs)
    text = outputs[0].read_text("utf-8")
    assert "**STAND-IN DATA: generated sentences" in text
    assert "Scale: demo." in text
    assert re.search(
        r"\| held \| \+0\.\d+ \| \+0\.\d+ to \+[01]\.\d+ \| 1 held, 1 not run \|", text
    )
    assert all(f"| {name} |" in text for name in demo.claims)
    frame = pd.read_csv(outputs[1], keep_default_na=False)
    assert set(frame["Scale"]) == {"demo (STAND-IN DATA)"}
    assert list(dict.fromkeys(frame["Claim"])) == list(demo.claims)
    whole = json.loads(outputs[2].read_text("utf-8"))
    assert (whole["scale"], whole["level"]) == ("demo", 0.05)
    judged = {one["name"]: one for one in whole["claims"]}
    assert judged["positions_help"]["verdict"] == "held"
    assert judged["positions_help"]["findings"][0]["value"] == pytest.approx(0.6)
    assert judged["beam_5_beats_1"]["verdict"] == "not run"
    assert judged["attention_is_cheap"]["untested"]


def test_an_empty_ledger_is_all_not_run(demo: Settings, tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text("", encoding="utf-8")
    output = tmp_path / "claims.json"
    write_claims(demo, ledger=tmp_path / "ledger.jsonl", outputs=[output])
    judged = json.loads(output.read_text("utf-8"))["claims"]
    assert {one["verdict"] for one in judged} == {"not run"}


@pytest.mark.parametrize(
    ("p_positive", "p_negative", "verdict"),
    [
        (0.0249, 0.9751, "held"),
        (0.025, 0.975, "undecided"),
        (0.975, 0.025, "undecided"),
        (0.9751, 0.0249, "not held"),
    ],
)
def test_a_verdict_needs_less_than_the_level(
    p_positive: float, p_negative: float, verdict: str
) -> None:
    assert claims.LEVEL == 0.05
    effect = Effect(1.0, (0.5, 1.5), p_positive, p_negative)
    decided = claims._decided(Finding("a comparison"), claims.WELCH, effect)
    assert decided == Finding(
        "a comparison",
        verdict=verdict,  # type: ignore[arg-type]
        value=1.0,
        interval=(0.5, 1.5),
        p=2 * min(p_positive, p_negative),
        p_holm=2 * min(p_positive, p_negative),
        tests=1,
        test=claims.WELCH,
    )
