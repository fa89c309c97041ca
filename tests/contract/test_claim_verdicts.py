"""Verdicts on the papers' claims: what is compared with what, and what the files say of it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from convs2s.config.settings import Settings
from convs2s.paper.cells import cells
from convs2s.paper.claims import (
    Finding,
    JudgedClaim,
    Verdict,
    printed_claims,
    verdict_of,
    write_claims,
)
from convs2s.paper.ledger import LedgerEntry, RunScore
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

CLAIM = better(BASE, NO_SOURCE)


def base(settings: Settings) -> list[LedgerEntry]:
    return entries(settings, BASE, [21.6, 21.7, 21.8])


def other(settings: Settings, **names: str) -> list[LedgerEntry]:
    return entries(settings, NO_SOURCE, [21.2, 21.3, 21.4], **names)


def changed(runs: list[LedgerEntry], **fields: Any) -> list[LedgerEntry]:
    return [replace(run, **fields) for run in runs]


def elsewhere(runs: list[LedgerEntry]) -> list[LedgerEntry]:
    return changed(runs, processor="another")


def test_a_finding_names_what_it_is_of(demo: Settings) -> None:
    result = finding(demo, CLAIM, base(demo), other(demo, task="demo_en_fr"))
    assert result.comparison.startswith("table4 'ConvS2S' BLEU better than table4 '-s")
    assert (result.verdict, result.runs) == ("held", "3 against 3")
    assert result.printed == pytest.approx(0.4)
    # Words and pieces of one text are compared.
    lines = "demo_en_fr_word test (500 lines); demo_en_fr test (500 lines)"
    assert result.test_set == lines
    assert result.metric == "tokenized BLEU before unknown word replacement nrefs:1"


@pytest.mark.parametrize(
    ("fields", "names", "words"),
    [
        ({}, {"testset": "valid"}, "not of one kind: demo_en_fr test (500 lines), nr"),
        ({"lines": 499}, {}, "not of one kind: "),
        ({"scores": {BEFORE: RunScore(21.0, "nrefs:2")}}, {}, "nrefs:1 against "),
        ({"processor": "another"}, {}, "not of one processor: a processor against ano"),
        ({"processor": None}, {}, "a processor against one that is not stated"),
    ],
)
def test_runs_that_differ_in_more_are_not_compared(
    demo: Settings, fields: dict[str, Any], names: dict[str, str], words: str
) -> None:
    result = finding(demo, CLAIM, base(demo), changed(other(demo, **names), **fields))
    assert (result.verdict, result.value) == ("no verdict", None)
    assert words in str(result.note)


def test_a_side_without_enough_runs_is_named(demo: Settings, paper: Settings) -> None:
    result = finding(demo, CLAIM, base(demo))
    assert (result.verdict, result.value) == ("not run", None)
    assert result.note == "table4 '-source position' BLEU: not run"
    notes = {
        (1, 1): "one run each: no verdict",
        (2, 3): "2 on a side: a verdict needs 3 runs a side",
        (3, 1): "1 on a side: a verdict needs 3 runs a side",
    }
    for (ours, theirs), note in notes.items():
        result = finding(demo, CLAIM, base(demo)[:ours], other(demo)[:theirs])
        assert (result.verdict, result.p, result.note) == ("no verdict", None, note)
    cell = {"table": "figure2", "group": "encoder", "row": "2"}
    stated = {"comparisons": [{"better": [cell], "worse": [cell | {"row": "3"}]}]}
    for settings, why in ((demo, "left out at this scale"), (paper, "not run")):
        named = [f"figure2 encoder '{row}' BLEU: {why}" for row in "23"]
        assert finding(settings, stated).note == "; ".join(named)


def test_a_trend_needs_three_places_on_its_axis(demo: Settings) -> None:
    for x, count in (((1.0, 1.0, 1.0), 3), ((1.0, 2.0, 3.0), 2)):
        rows = dict(zip(("1", "2", "3"), x, strict=True))
        claim = {"trends": [{"table": "table5", "x": rows, "per": "layer"}]}
        found = [
            entries(demo, row, [20, 21, 22], table="table5")
            for row in list(rows)[:count]
        ]
        result = finding(demo, claim, *found)
        assert result.verdict == "not run"
        assert "scores at 3 different values of x are needed" in str(result.note)


def test_the_same_runs_on_both_sides_are_no_two_systems(demo: Settings) -> None:
    """Systems that differ in their recipe alone are one small network at a scale that shrinks."""

    def copies(row: str, runs: list[LedgerEntry]) -> list[LedgerEntry]:
        made = entries(demo, row, [run.scores[BEFORE].score for run in runs])
        return [
            replace(one, fingerprint=run.fingerprint)
            for one, run in zip(made, runs, strict=True)
        ]

    rows = {row: {"table": "table4", "row": row} for row in (BASE, NO_SOURCE)}
    copied = {row: {"table": "table4", "row": row} for row in (NO_TARGET, NONE)}
    # A + B against C + D, where A is C and B is D.
    sums = {"better": [*rows.values()], "worse": [*copied.values()], "within": 0.5}
    first = base(demo)
    second = other(demo)
    for claim, runs in (
        (better(BASE, NO_TARGET), []),
        ({"comparisons": [sums]}, [second, copies(NONE, second)]),
    ):
        result = finding(demo, claim, first, copies(NO_TARGET, first), *runs)
        assert (result.verdict, result.p) == ("no verdict", None)
        assert result.value == pytest.approx(0.0, abs=1e-9)
        assert str(result.note).startswith("the same runs on both sides: ")


def test_a_claim_about_eight_models_rests_on_eight(demo: Settings) -> None:
    together = entries(demo, BASE, [23.0], model=NO_SOURCE, run="ensemble3")
    eight = finding(demo, better(BASE, NO_SOURCE, models=8), together, other(demo))
    assert eight.note == "the claim is about 8 models together; here are only 3"
    assert eight.verdict == "no verdict"
    assert eight.value == pytest.approx(1.7)
    stranger = other(demo, model="another")
    result = finding(demo, better(BASE, NO_SOURCE, models=3), together, stranger)
    assert result.verdict == "no verdict"
    assert "no three of its models alone" in str(result.note)


def test_runs_on_two_processors_are_compared_on_the_one_that_has_all(
    demo: Settings,
) -> None:
    """A base that was trained on both, and a row of each, as when sessions change machines."""
    both = base(demo) + elsewhere(entries(demo, BASE, [22.6, 22.7, 22.8]))
    there = elsewhere(entries(demo, NO_TARGET, [21.5] * 3))
    result = finding(demo, CLAIM, both, other(demo))
    assert (result.verdict, result.runs) == ("held", "3 against 3")
    assert result.value == pytest.approx(0.4)
    result = finding(demo, better(BASE, NO_TARGET), both, there)
    assert result.value == pytest.approx(1.2)
    # Of two that have all, it is the one with most runs of the table, then the last by name.
    all_there = elsewhere(
        entries(demo, BASE, [20.0] * 3) + entries(demo, NO_SOURCE, [22.0] * 3)
    )
    all_here = base(demo) + other(demo)
    more = entries(demo, NO_TARGET, [21.0])
    for runs in (all_here + all_there, all_there + all_here):
        assert finding(demo, CLAIM, runs).value == pytest.approx(-2.0)
        assert finding(demo, CLAIM, runs, more).value == pytest.approx(0.4)
        # One's own come before the published ones.
        published = [
            replace(run, origin="theirs" if run.processor == "another" else None)
            for run in runs
        ]
        assert finding(demo, CLAIM, published).value == pytest.approx(0.4)


def test_processors_of_equal_perplexities_are_one(demo: Settings) -> None:
    """A training that both have made tells: to the last digit, or they stay two."""
    first, second = entries(
        demo, BASE, [4.766, 4.8], column="ppl", measure="perplexity"
    )

    def again(run: LedgerEntry, perplexity: float) -> LedgerEntry:
        scores = {"perplexity": RunScore(perplexity, None)}
        return replace(run, processor="another", scores=scores)

    def verdict(*trainings: LedgerEntry) -> str:
        runs = base(demo), elsewhere(other(demo))
        return finding(demo, CLAIM, *runs, trainings).verdict

    equal = again(first, 4.766)
    assert verdict(first, equal) == "held"
    assert verdict(first) == "no verdict"
    assert verdict(first, again(first, 4.7660000000001)) == "no verdict"
    assert verdict(first, again(second, 4.766)) == "no verdict"
    assert verdict(first, equal, second, again(second, 4.9)) == "no verdict"


def test_equal_perplexities_in_one_precision_say_nothing_of_another(
    demo: Settings,
) -> None:
    """Each precision has kernels of its own, and so has each kind of network."""

    def of(precision: str, kind: str, runs: list[LedgerEntry]) -> list[LedgerEntry]:
        trained = {"architecture": {"kind": kind}, "training": {"precision": precision}}
        return [replace(run, inputs={**run.inputs, "trained": trained}) for run in runs]

    trained = entries(demo, BASE, [4.766], column="ppl", measure="perplexity")
    trained = of("bf16", "convs2s", trained + elsewhere(trained))
    verdicts = {
        ("bf16", "convs2s"): "held",
        ("fp32", "convs2s"): "no verdict",
        ("bf16", "lstm"): "no verdict",
    }
    for (precision, kind), verdict in verdicts.items():
        here = of(precision, kind, base(demo))
        there = of(precision, kind, elsewhere(entries(demo, NO_SOURCE, [20, 20.1, 20])))
        assert finding(demo, CLAIM, here, there, trained).verdict == verdict


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
    verdicts: list[Verdict], expected: str
) -> None:
    assert verdict_of(verdicts) == expected


def test_the_finding_that_decides_stands_beside_the_claim(demo: Settings) -> None:
    held = Finding("a", "held", 0.5, note="of a")
    lost = Finding("b", "not held", -0.3, note="of b", interval=(-0.5, -0.1))
    turned = replace(lost, p_reversal=0.01)
    columns = ("Difference", "95% interval", "Comparisons", "Notes")
    both = "1 held, 1 not held"
    for last, line in (
        (lost, ("-0.30", "-0.50 to -0.10", both, "")),
        (turned, ("", "", both, "of b")),
    ):
        claim = JudgedClaim("mine", "rises", "a paper", "not held", (held, last), None)
        (row,) = printed_claims(demo, [claim])[0].rows
        assert tuple(row[column] for column in columns) == line


def test_all_formats_say_the_same(demo: Settings, tmp_path: Path) -> None:
    scale = demo.scale.model_copy(update={"seeds_of": {"table4": 3}})
    demo = replace(demo, scale=scale)
    planned = [cell for cell in cells(demo, "table4") if cell.measure == "perplexity"]
    lines = []
    for cell, ppl in zip(planned, (6.0, 6.6), strict=False):
        scores = [ppl, ppl + 0.01, ppl + 0.02]
        planted = entries(demo, BASE, scores, measure="perplexity")
        for entry, run in zip(planted, cell.records, strict=True):
            # The cells that a line names were those of another configuration.
            made = replace(entry, fingerprint=run.fingerprint, inputs=run.inputs)
            lines.append(f"{made.line()}\n")
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text("".join(lines), "utf-8")
    outputs = [tmp_path / f"claims.{end}" for end in ("md", "csv", "json")]
    write_claims(demo, ledger=ledger, outputs=outputs)
    text = outputs[0].read_text("utf-8")
    assert "**STAND-IN DATA: generated sentences" in text
    assert re.search(
        r"\| held \| \+0\.60 \| \+0\.\d+ to \+0\.\d+ \| 0\.\d\d \| 1 held, 1 not run \|",
        text,
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
