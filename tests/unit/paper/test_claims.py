"""The claims' verdicts: from planted scores, one test for each way that runs can be there."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from convs2s.config.settings import Settings
from convs2s.paper import claims, evidence
from convs2s.paper.cells import CellAddress
from convs2s.paper.claims import (
    Finding,
    JudgedClaim,
    correct,
    printed_claims,
    verdict_of,
    write_claims,
)
from convs2s.paper.ledger import LedgerEntry, RunScore
from convs2s.scoring import significance
from convs2s.scoring.bleu import encode_statistics
from tests.support.cells import cells
from tests.support.claims import (
    BASE,
    BEFORE,
    NO_SOURCE,
    NO_TARGET,
    NONE,
    better,
    entries,
    finding,
)
from tests.support.statistics import bleu_of


def with_sentences(entry: LedgerEntry, share: float, seed: int) -> LedgerEntry:
    """An entry of a test set of which so large a share of words is right."""
    order = np.random.default_rng(seed)
    words = np.random.default_rng(0).integers(6, 20, 300)
    totals = [np.maximum(words - n, 0) for n in range(4)]
    matches = [
        order.binomial(total, share ** (n + 1)) for n, total in enumerate(totals)
    ]
    statistics = np.stack([words, words, *matches], axis=1)
    scores = {BEFORE: RunScore(bleu_of(statistics), "nrefs:1")}
    other = encode_statistics(np.stack([words, words, *totals], axis=1))
    sentences = {"bleu_tokenized": other, BEFORE: encode_statistics(statistics)}
    return replace(entry, scores=scores, sentences=sentences)


@pytest.mark.parametrize(
    ("base", "other", "verdict"),
    [
        ([21.6, 21.7, 21.8], [21.2, 21.3, 21.4], "held"),
        ([21.2, 21.3, 21.4], [21.6, 21.7, 21.8], "not held"),
        ([21.2, 21.6, 21.9], [21.1, 21.5, 21.9], "undecided"),
        ([21.6, 21.7, 21.7, 21.8], [20.0, 20.1, 20.2], "held"),
    ],
)
def test_seeds_of_two_models(
    demo: Settings, base: list[float], other: list[float], verdict: str
) -> None:
    found = entries(demo, BASE, base), entries(demo, NO_SOURCE, other)
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert (result.verdict, result.test) == (verdict, claims.RUNS)
    assert result.value == pytest.approx(np.mean(base) - np.mean(other))
    assert result.printed == pytest.approx(0.4)
    assert result.runs == f"{len(base)} against {len(other)}"
    assert result.test_set == "demo_en_fr_word test (500 lines)"
    assert result.metric == "tokenized BLEU before unknown word replacement nrefs:1"
    assert result.tests == 1


def test_of_the_same_models_the_differences_count(demo: Settings) -> None:
    """Two searches of three seeds that differ much more among each other."""
    scores = [20.0, 24.0, 28.0]
    found = (
        entries(
            demo,
            BASE,
            [score + gain for score, gain in zip(scores, (0.3, 0.4, 0.5), strict=True)],
        ),
        entries(demo, NO_SOURCE, scores, model=BASE),
    )
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert (result.verdict, result.test) == ("held", claims.RUNS + claims.SAME_MODELS)
    apart = finding(
        demo, better(BASE, NO_SOURCE), found[0], entries(demo, NO_SOURCE, scores)
    )
    assert (apart.verdict, apart.test) == ("undecided", claims.RUNS)
    trained_again = [
        replace(entry, sha256={"model.safetensors": "another"}) for entry in found[1]
    ]
    assert finding(demo, better(BASE, NO_SOURCE), found[0], trained_again) == result


def test_the_same_runs_on_both_sides_are_no_two_systems(demo: Settings) -> None:
    """Systems that differ in their recipe alone are one small network at a scale that shrinks."""

    def same(row: str, runs: list[LedgerEntry]) -> list[LedgerEntry]:
        made = entries(demo, row, [run.scores[BEFORE].score for run in runs])
        return [
            replace(one, fingerprint=run.fingerprint)
            for one, run in zip(made, runs, strict=True)
        ]

    base = entries(demo, BASE, [20.0, 20.1, 20.2])
    lone, other = same(NO_SOURCE, base), entries(demo, NO_SOURCE, [19.0, 19.2, 19.4])
    names = {
        row: {"table": "table4", "row": row}
        for row in (BASE, NO_SOURCE, NO_TARGET, NONE)
    }
    sums = {  # A + B against C + D, where A is C and B is D
        "better": [names[BASE], names[NO_SOURCE]],
        "worse": [names[NO_TARGET], names[NONE]],
    }
    ways: list[dict[str, object]] = [{}, {"margin": 0.5}, {"within": 0.5}]
    for stated in ways:
        pair = {"better": [names[BASE]], "worse": [names[NO_SOURCE]], **stated}
        two = finding(demo, {"comparisons": [pair]}, base, lone)
        copies = same(NO_TARGET, base), same(NONE, other)
        four = finding(
            demo, {"comparisons": [{**sums, **stated}]}, base, other, *copies
        )
        for result in (two, four):
            assert (result.verdict, result.p) == ("no verdict", None)
            assert result.value == pytest.approx(0.0, abs=1e-9)
            assert (
                result.note
                == "the same runs on both sides: at this scale the systems are one"
            )


@pytest.mark.parametrize(
    ("margin", "verdict"),
    [(0.0, "not held"), (0.1, "not held"), (0.3, "undecided"), (1.0, "held")],
)
def test_a_margin_is_what_does_not_count(
    demo: Settings, margin: float, verdict: str
) -> None:
    found = (
        entries(demo, NO_SOURCE, [21.20, 21.22, 21.24]),
        entries(demo, BASE, [21.50, 21.52, 21.54]),
    )
    assert (
        finding(demo, better(NO_SOURCE, BASE, margin=margin), *found).verdict == verdict
    )


def test_of_perplexity_the_fall_counts(demo: Settings) -> None:
    found = [
        entries(demo, row, scores, column="ppl", measure="perplexity")
        for row, scores in ((BASE, [6.60, 6.61, 6.62]), (NO_SOURCE, [6.70, 6.71, 6.72]))
    ]
    result = finding(demo, better(BASE, NO_SOURCE, column="ppl"), *found)
    assert result.verdict == "held"
    assert result.value == pytest.approx(0.1)
    assert result.test_set is None


def seeds_with_sentences(
    settings: Settings, row: str, share: float, seeds: Sequence[int]
) -> list[LedgerEntry]:
    runs = zip(entries(settings, row, [0.0] * len(seeds)), seeds, strict=True)
    return [with_sentences(entry, share, seed) for entry, seed in runs]


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.6, "held"), (0.78, "undecided"), (0.95, "not held")]
)
def test_runs_and_sentences_are_drawn(
    demo: Settings, share: float, verdict: str
) -> None:
    base = seeds_with_sentences(demo, BASE, 0.78, [1, 2, 3])
    other = seeds_with_sentences(demo, NO_SOURCE, share, [4, 5, 6])
    result = finding(demo, better(BASE, NO_SOURCE), base, other)
    assert (result.verdict, result.test) == (verdict, claims.HIERARCHICAL)
    assert result.interval is not None
    assert result.value is not None
    assert result.interval[0] < result.value < result.interval[1]
    swapped = finding(demo, better(NO_SOURCE, BASE), base, other)
    mirrored = {"held": "not held", "not held": "held", "undecided": "undecided"}
    assert swapped.verdict == mirrored[verdict]
    assert swapped.p == pytest.approx(result.p)
    assert swapped.p_error == pytest.approx(result.p_error)


@pytest.mark.parametrize(("others", "note"), [
    ([4], "one run each: no verdict"),
    ([4, 5, 6], "1 on a side: a verdict needs 3 runs a side"),
])  # fmt: skip
def test_one_run_has_a_difference_and_no_verdict(
    demo: Settings, others: list[int], note: str
) -> None:
    """Wherever the bootstrap over sentences alone would see a difference."""
    base = seeds_with_sentences(demo, BASE, 0.8, [1])
    other = seeds_with_sentences(demo, NO_SOURCE, 0.6, others)
    result = finding(demo, better(BASE, NO_SOURCE), base, other)
    assert (result.verdict, result.note, result.p) == ("no verdict", note, None)
    assert result.interval is not None
    assert result.value is not None
    assert 0 < result.interval[0] < result.value < result.interval[1]


def test_one_run_whose_sentences_are_not_known_has_no_interval(demo: Settings) -> None:
    found = entries(demo, BASE, [25.0]), entries(demo, NO_SOURCE, [15.0])
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert (result.verdict, result.value, result.interval) == ("no verdict", 10.0, None)


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ([21.0, 21.1, 21.2], "held"),
        ([23.4, 23.5, 23.6], "not held"),
        ([21.4, 21.5, 21.6], "undecided"),
        ([19.2, 19.3, 19.4], "not held"),
        ([19.6, 19.5], "no verdict"),
    ],
)
def test_a_plateau_has_two_bounds(
    demo: Settings, scores: list[float], verdict: str
) -> None:
    """A fall of two points is none, whichever side it is on."""
    found = entries(demo, BASE, scores), entries(demo, NO_SOURCE, [21.0, 21.1, 21.2])
    assert finding(demo, better(BASE, NO_SOURCE, within=0.5), *found).verdict == verdict


@pytest.mark.parametrize(
    ("shares", "p_values", "verdict"),
    [
        ([0.5, 0.4, 0.6], [0.01, 0.02, 0.01], "held"),
        ([0.5, 0.4, 0.6], [0.01, 0.06, 0.01], "undecided"),
        ([0.01, 0.02, 0.01], [0.01, 0.02, 0.01], "not held"),
        ([0.5, 0.4, 0.01], [0.01, 0.02, 0.01], "undecided"),
        ([0.5, 0.4, 0.6], [], "no verdict"),
        ([0.5, 0.4], [0.01, 0.02], "no verdict"),
    ],
)
def test_meanings_are_apart_by_swaps(
    demo: Settings, shares: list[float], p_values: list[float], verdict: str
) -> None:
    row = "word order, sixteen phrases"
    scored = entries(
        demo, row, shares, table="lstm_figure2", column="apart", measure="phrases_apart"
    )
    for place, p in enumerate(p_values):
        by_chance = {
            "phrases_p": RunScore(p, None),
            "phrases_chance": RunScore(0.1, None),
        }
        scored[place] = replace(
            scored[place], scores={**scored[place].scores, **by_chance}
        )
    cell = {
        "table": "lstm_figure2",
        "group": "of this project",
        "row": row,
        "column": "apart",
    }
    result = finding(demo, {"phrases": [cell]}, scored)
    assert result.verdict == verdict
    assert result.value == (pytest.approx(np.mean(shares) - 0.1) if p_values else None)
    of_both_sides = min(shares) < 0.1 < max(shares)
    p = 1.0 if of_both_sides else max(p_values, default=1.0)
    assert result.p == (None if verdict == "no verdict" else p)
    assert result.tests == (result.p is not None)


@pytest.mark.parametrize(("models", "verdict"), [(3, "held"), (8, "no verdict")])
def test_a_claim_about_eight_models_rests_on_eight(
    demo: Settings, models: int, verdict: str
) -> None:
    singles = entries(demo, NO_SOURCE, [21.0, 21.1, 21.2])
    (together,) = entries(demo, BASE, [23.0], model=NO_SOURCE)
    together = replace(together, run=replace(together.run, run="ensemble3"))
    claim = better(BASE, NO_SOURCE, models=models)
    result = finding(demo, claim, [together], singles)
    assert (result.verdict, result.runs) == (verdict, "ensemble3 against 3")
    assert result.note == (
        None if models == 3 else "the claim is of 8 models together, here are 3"
    )
    if models == 3:  # the ensemble is taken to vary as its models do
        half = stats.t.ppf(0.975, 2) * np.sqrt(0.01 + 0.01 / 3)
        assert result.interval == pytest.approx((1.9 - half, 1.9 + half))
        # Its fourth model does not stand alone.
        larger = replace(together, run=replace(together.run, run="ensemble4"))
        assert finding(demo, claim, [larger], singles).interval == pytest.approx(
            result.interval
        )
    other = entries(demo, NO_SOURCE, [21.0, 21.1, 21.2], model="another")
    unknown = replace(together, inputs={})
    for ensemble, alone in (
        (together, other),
        (together, singles[:2]),
        (unknown, singles),
    ):
        apart = finding(demo, claim, [ensemble], alone)
        assert apart.verdict == "no verdict"
    assert "no three of its models alone" in str(apart.note)


def test_a_gain_is_held_against_another(demo: Settings) -> None:
    names = [{"table": "table4", "row": row} for row in (BASE, NO_SOURCE, NO_TARGET)]
    stated = {"comparisons": [{"better": [names[0]] * 2, "worse": names[1:]}]}
    found = [
        entries(demo, row, [score, score + 0.1, score + 0.2])
        for row, score in ((BASE, 21.0), (NO_SOURCE, 19.0), (NO_TARGET, 20.0))
    ]
    result = finding(demo, stated, *found)
    assert result.verdict == "held"
    assert result.value == pytest.approx(3.0)
    assert result.runs == "3 + 3 against 3 + 3"


def test_a_side_without_a_score_is_named(demo: Settings, paper: Settings) -> None:
    result = finding(
        demo, better(BASE, NO_SOURCE), entries(demo, BASE, [21.0, 21.1, 21.2])
    )
    assert (result.verdict, result.value) == ("not run", None)
    assert result.note == "table4 '-source position' BLEU: not run"
    cell = {"table": "figure2", "group": "encoder", "row": "2"}
    stated = {"comparisons": [{"better": [cell], "worse": [cell | {"row": "3"}]}]}
    left_out = finding(demo, stated).note
    cells = [f"figure2 encoder '{row}' BLEU" for row in "23"]
    assert left_out == "; ".join(f"{cell}: left out at this scale" for cell in cells)
    assert finding(paper, stated).note == "; ".join(
        f"{cell}: not run" for cell in cells
    )


@pytest.mark.parametrize(("testset", "lines"), [("valid", 500), ("test", 499)])
def test_other_sentences_are_not_compared(
    demo: Settings, testset: str, lines: int
) -> None:
    other = entries(demo, NO_SOURCE, [20.0, 20.1, 20.2], testset=testset, lines=lines)
    found = entries(demo, BASE, [21.0, 21.1, 21.2]), other
    result = finding(demo, better(BASE, NO_SOURCE), *found)
    assert (result.verdict, result.value) == ("no verdict", None)
    assert result.note is not None
    assert result.note.startswith(
        "not of one kind: demo_en_fr test (500 lines), nrefs:1 against "
    )


def test_words_and_bpe_of_one_text_are_compared(demo: Settings) -> None:
    pieces = entries(demo, BASE, [21.0, 21.1, 21.2], task="demo_en_fr")
    result = finding(
        demo,
        better(BASE, NO_SOURCE),
        pieces,
        entries(demo, NO_SOURCE, [20.0, 20.1, 20.2]),
    )
    assert result.verdict == "held"
    assert (
        result.test_set
        == "demo_en_fr test (500 lines); demo_en_fr_word test (500 lines)"
    )


def test_a_printed_value_counts_where_the_data_is_the_papers(
    demo: Settings, paper: Settings
) -> None:
    claim = {
        "comparisons": [
            {
                "better": [
                    {
                        "table": "lstm_table1",
                        "row": "Single reversed LSTM, beam size 12",
                    }
                ],
                "worse": [{"table": "lstm_table1", "row": "Bahdanau et al."}],
            }
        ]
    }
    found = entries(
        paper,
        "Single reversed LSTM, beam size 12",
        [30.5, 30.7, 30.6],
        table="lstm_table1",
        measure="bleu_tokenized",
        task="wmt14_en_fr_word",
    )
    result = finding(paper, claim, found)
    assert (result.verdict, result.runs) == ("held", "3 against printed")
    assert result.test == claims.RUNS  # nothing is there to be of the same models
    assert result.value == pytest.approx(30.6 - 28.45)
    assert "a printed value is of the paper's data" in (
        finding(demo, claim, found).note or ""
    )


@pytest.mark.parametrize(
    ("better", "verdict"), [("ours", "held"), ("printed", "not held")]
)
def test_a_printed_time_is_compared_though_its_row_names_no_measure(
    paper: Settings, better: str, verdict: str
) -> None:
    rows = {"ours": "ConvS2S GPU (K40), beam 1", "printed": "GNMT GPU (K80)"}
    sides = {
        "better" if name == better else "worse": [
            {"table": "table3", "row": row, "column": "seconds"}
        ]
        for name, row in rows.items()
    }
    seconds = [300, 310, 320]
    found = entries(
        paper,
        rows["ours"],
        seconds,
        table="table3",
        column="seconds",
        measure="seconds_cuda",
    )
    assert finding(paper, {"comparisons": [sides]}, found).verdict == verdict


def trend_over(*rows: str) -> dict[str, object]:
    x = {row: float(len(row)) for row in rows}
    return {"trends": [{"table": "table5", "x": x, "per": "layer"}]}


LAYERS = ("1", "1, 2", "1, 2, 3", "1, 2, 3, 4", "1, 2, 3, 4, 5")


def rows_of_table5(
    settings: Settings, heights: Sequence[float]
) -> list[list[LedgerEntry]]:
    return [
        entries(settings, row, [height - 0.1, height, height + 0.1], table="table5")
        for row, height in zip(LAYERS, heights, strict=False)
    ]


@pytest.mark.parametrize(("sign", "verdict"), [(1, "held"), (-1, "not held")])
def test_a_trend_is_a_linear_contrast(demo: Settings, sign: int, verdict: str) -> None:
    found = rows_of_table5(demo, [20 + sign * 3 * number for number in range(5)])
    result = finding(demo, trend_over(*LAYERS), *found)
    assert result.verdict == verdict
    assert result.value == pytest.approx(sign)  # three characters a row
    assert (result.runs, result.test, result.tests) == ("15 in 5 rows", claims.RUNS, 11)
    assert result.measure == "BLEU per layer"
    some = finding(demo, trend_over(*LAYERS), *found[:4])
    assert some.verdict == verdict
    assert str(some.note).startswith("no score: '1, 2, 3, 4, 5'")
    few = finding(demo, trend_over(*LAYERS), *found[:2])
    assert few.verdict == "not run"
    assert "scores at 3 different values of x are needed" in str(few.note)


def test_a_trend_needs_three_places_on_its_axis(demo: Settings) -> None:
    """Single layers lie at one place: there is no slope."""
    x = dict.fromkeys(LAYERS[:3], 1.0)
    wanted = {"trends": [{"table": "table5", "x": x, "per": "layer"}]}
    result = finding(demo, wanted, *rows_of_table5(demo, [20.0, 21.0, 22.0]))
    assert result.verdict == "not run"
    assert "scores at 3 different values of x are needed" in str(result.note)


def test_a_trend_of_one_run_a_row_has_no_verdict(demo: Settings) -> None:
    found = [runs[:1] for runs in rows_of_table5(demo, [20.0, 21.0, 22.0, 23.0, 24.0])]
    result = finding(demo, trend_over(*LAYERS), *found)
    assert (result.verdict, result.note) == ("no verdict", "one run each: no verdict")
    assert result.value == pytest.approx(1 / 3)


def test_two_rows_the_other_way_about_refute_a_trend(demo: Settings) -> None:
    """It rises on the whole, and row 2 is clearly better than row 4."""
    result = finding(
        demo, trend_over(*LAYERS), *rows_of_table5(demo, [10, 28, 25, 18, 40])
    )
    assert result.value is not None
    assert result.value > 0
    assert result.p is not None
    assert result.p < 0.05
    assert result.verdict == "not held"
    assert "'1, 2' is better than '1, 2, 3, 4' in BLEU (p = " in str(result.note)
    claim = JudgedClaim("mine", "rises", "a paper", result.verdict, (result,), None)
    assert (claim.decisive.value, claim.decisive.note) == (None, result.note)
    (row,) = printed_claims(demo, [claim])[0].rows
    assert (row["Difference"], row["95% interval"], row["Measure"]) == ("", "", "")
    assert row["Notes"] == result.note
    assert (
        finding(
            demo, trend_over(*LAYERS), *rows_of_table5(demo, [10, 28, 27.9, 35, 40])
        ).verdict
        == "held"
    )


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], "not run"),
        (["not run", "not run"], "not run"),
        (["held", "not run"], "held"),
        (["held", "undecided"], "undecided"),
        (["held", "undecided", "not held"], "not held"),
        (["no verdict", "not run"], "no verdict"),
        (["no verdict", "held"], "held"),
    ],
)
def test_a_claim_is_all_of_its_comparisons(
    verdicts: list[claims.Verdict], expected: str
) -> None:
    assert verdict_of(verdicts) == expected


def test_all_formats_say_the_same(demo: Settings, tmp_path: Path) -> None:
    demo = replace(
        demo, scale=demo.scale.model_copy(update={"seeds_of": {"table4": 3}})
    )
    scored = list[LedgerEntry]()
    for cell in cells(demo, "table4"):
        if cell.measure == "perplexity" and cell.address.row < 2:
            row, ppl = ((BASE, 6.0), (NO_SOURCE, 6.6))[cell.address.row]
            planted = entries(
                demo, row, [ppl, ppl + 0.01, ppl + 0.02], measure="perplexity"
            )
            for entry, run in zip(planted, cell.records, strict=True):
                scored.append(
                    replace(entry, fingerprint=run.fingerprint, inputs=run.inputs)
                )
    # What the line says of its cells was true of another configuration.
    scored = [replace(entry, table_cells=("table1, row 1, bleu",)) for entry in scored]
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text(
        "".join(f"{entry.line()}\n" for entry in scored), encoding="utf-8"
    )
    outputs = [tmp_path / f"claims.{end}" for end in ("md", "csv", "json")]
    write_claims(demo, ledger=ledger, outputs=outputs)
    text = outputs[0].read_text("utf-8")
    assert "**STAND-IN DATA: generated sentences" in text
    assert "Scale: demo." in text
    assert "measured by Validation perplexity" in text
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
    assert judged["attention_is_cheap"]["verdict"] == "not tested"


def test_an_empty_ledger_is_all_not_run(demo: Settings, tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text("", encoding="utf-8")
    output = tmp_path / "claims.json"
    write_claims(demo, ledger=tmp_path / "ledger.jsonl", outputs=[output])
    judged = json.loads(output.read_text("utf-8"))["claims"]
    assert {one["verdict"] for one in judged} == {"not run", "not tested"}


@pytest.mark.parametrize(
    ("p", "error", "verdict"),
    [
        (0.0499, 0.0, "held"),
        (0.05, 0.0, "undecided"),
        (0.048, 0.0006, "held"),
        (0.048, 0.0008, "undecided"),
        # wide_decoder_kernels: by 1,000 draws, and by 20,000
        (0.048, 0.007, "undecided"),
        (0.0506, 0.0015, "undecided"),
    ],
)
def test_a_verdict_does_not_depend_on_the_draws(
    p: float, error: float, verdict: str
) -> None:
    assert claims.LEVEL == 0.05
    for stated in ("held", "not held"):
        tested = Finding("a comparison", stated, p=p, p_error=error)
        correct([tested])
        assert tested.verdict == (stated if verdict == "held" else verdict)
        assert (tested.note is not None) == (error > 0.0006)


def test_other_draws_give_the_same_verdict_or_none(
    demo: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = seeds_with_sentences(demo, BASE, 0.78, [1, 2, 3])
    for share in (0.76, 0.77):
        other = seeds_with_sentences(demo, NO_SOURCE, share, [4, 5, 6])
        found = set()
        for seed in range(3):
            monkeypatch.setattr(significance, "RESAMPLING_SEED", seed)
            significance._kept_counts.cache_clear()
            evidence._measures.cache_clear()
            found.add(finding(demo, better(BASE, NO_SOURCE), base, other).verdict)
        assert len(found - {"undecided"}) <= 1


def test_p_is_corrected_for_the_tests_of_a_claim() -> None:
    """Of three one alone is small enough; a reversal counts as a test too."""
    tested = [Finding("", "held", p=p) for p in (0.01, 0.03, 0.04)]
    correct(tested)
    assert [each.p_holm for each in tested] == pytest.approx([0.03, 0.06, 0.06])
    assert [each.verdict for each in tested] == ["held", "undecided", "undecided"]
    trend = Finding("", "held", p=0.01, p_reversal=0.04)
    correct([trend])
    assert (trend.verdict, trend.p_reversal) == ("not held", 0.04)
    correct([trend, *tested])
    assert trend.p_reversal == pytest.approx(0.09)


def test_sentences_of_tokenized_bleu_stand_for_those_of_detokenized(
    demo: Settings,
) -> None:
    """The ledger has no others, and both scores are of the same lines."""
    (entry,) = seeds_with_sentences(demo, BASE, 0.8, [1])
    measure = BEFORE.replace("tokenized", "detokenized")
    cell = evidence.Evidence(
        CellAddress("table1", 1, "bleu"),
        label="",
        heading="BLEU",
        measure=measure,
        printed=None,
        is_cited=False,
        entries=(entry,),
        missing=None,
        text=None,
    )
    assert cell.sentences("score") == [entry.sentences[BEFORE]]
