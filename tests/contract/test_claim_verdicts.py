"""Verdicts on the papers' claims: what is compared with what, and what the files say of it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from convs2s.config.settings import Settings
from convs2s.files.text import write_lines
from convs2s.paper.cells import cells
from convs2s.paper.claim_tables import printed_claims, write_claims
from convs2s.paper.claims import Finding, JudgedClaim, verdict_of
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
from tests.support.refusals import rows, says

CLAIM = better(BASE, NO_SOURCE)

Runs = Sequence[LedgerEntry]


@pytest.fixture(scope="session")
def base(demo: Settings) -> Runs:
    return entries(demo, BASE, [21.6, 21.7, 21.8])


@pytest.fixture(scope="session")
def other(demo: Settings) -> Runs:
    return entries(demo, NO_SOURCE, [21.2, 21.3, 21.4])


def changed(runs: Runs, **fields: Any) -> Runs:
    return [replace(run, **fields) for run in runs]


def elsewhere(runs: Runs) -> Runs:
    return changed(runs, processor="another")


def test_a_finding_names_what_it_is_of(demo: Settings, base: Runs) -> None:
    """Words and pieces of one text are compared."""
    of_pieces = entries(demo, NO_SOURCE, [21.2, 21.3, 21.4], task="demo_en_fr")
    result = finding(demo, CLAIM, base, of_pieces)
    assert result.comparison.startswith("table4 'ConvS2S' BLEU better than table4 '-s")
    assert (result.verdict, result.runs) == ("held", "3 against 3")
    assert result.printed == pytest.approx(0.4)
    lines = "demo_en_fr_word test (500 lines); demo_en_fr test (500 lines)"
    assert result.test_set == lines
    assert result.metric == "tokenized BLEU before unknown word replacement nrefs:1"


def test_runs_that_differ_in_more_are_not_compared(
    demo: Settings, base: Runs, other: Runs
) -> None:
    of_two = {BEFORE: RunScore(21.0, "nrefs:2")}
    for runs, words in (
        (changed(other, lines=499), "not of one kind: demo_en_fr test (500 lines), nr"),
        (changed(other, scores=of_two), "nrefs:1 against "),
        (elsewhere(other), "not of one processor: a processor against ano"),
        (changed(other, processor=None), "a processor against one that is not stated"),
    ):
        result = finding(demo, CLAIM, base, runs)
        assert (result.verdict, result.value) == ("no verdict", None)
        assert words in str(result.note)


def test_a_side_without_enough_runs_is_named(
    demo: Settings, base: Runs, other: Runs
) -> None:
    """A trend needs three places on its axis."""
    result = finding(demo, CLAIM, base)
    assert (result.verdict, result.value) == ("not run", None)
    assert result.note == "table4 '-source position' BLEU: not run"
    absent = yaml.safe_load("""
        comparisons: [{better: [&one {table: figure2, group: encoder, row: "2"}], worse: [*one]}]
    """)
    result = finding(demo, absent)
    assert "figure2 encoder '2' BLEU: left out at this scale" in str(result.note)
    for ours, theirs, note in (
        (1, 1, "one run each: no verdict"),
        (2, 3, "2 on a side: a verdict needs 3 runs a side"),
    ):
        result = finding(demo, CLAIM, base[:ours], other[:theirs])
        assert (result.verdict, result.p, result.note) == ("no verdict", None, note)
    trend = yaml.safe_load("""
        trends: [{table: table5, x: {"1": 1, "2": 2, "3": 2}, per: layer}]
    """)
    found = [entries(demo, row, [20, 21, 22], table="table5") for row in "123"]
    result = finding(demo, trend, *found)
    assert result.verdict == "not run"
    assert "scores at 3 different values of x are needed" in str(result.note)


# A + B against C + D, where A is C and B is D.
SUMS = yaml.safe_load("""
comparisons:
- better: [{table: table4, row: ConvS2S}, {table: table4, row: "-source position"}]
  worse:
  - {table: table4, row: "-target position"}
  - {table: table4, row: "-source & target position"}
  within: 0.5
""")


def test_the_same_runs_on_both_sides_are_no_two_systems(
    demo: Settings, base: Runs, other: Runs
) -> None:
    """Systems that differ in their recipe alone are one small network at a scale that shrinks."""

    def in_row(row: str, runs: Runs) -> Runs:
        (shown,) = entries(demo, row, [0.0])
        return changed(runs, table_cells=shown.table_cells)

    same = in_row(NO_TARGET, base)
    for result in (
        finding(demo, better(BASE, NO_TARGET), base, same),
        finding(demo, SUMS, base, same, other, in_row(NONE, other)),
    ):
        assert (result.verdict, result.p) == ("no verdict", None)
        assert result.value == pytest.approx(0.0, abs=1e-9)
        assert str(result.note).startswith("the same runs on both sides: ")


def test_a_claim_about_eight_models_rests_on_eight(demo: Settings, other: Runs) -> None:
    together = entries(demo, BASE, [23.0], model=NO_SOURCE, run="ensemble3")
    eight = finding(demo, better(BASE, NO_SOURCE, models=8), together, other)
    assert eight.note == "the claim is about 8 models together; only 3 are here"
    assert eight.verdict == "no verdict"
    assert eight.value == pytest.approx(1.7)
    strangers = entries(demo, NO_SOURCE, [21.2, 21.3, 21.4], model="another")
    result = finding(demo, better(BASE, NO_SOURCE, models=3), together, strangers)
    assert result.verdict == "no verdict"
    assert "three of its models alone" in str(result.note)


def test_runs_on_two_processors_are_compared_on_the_one_that_has_all(
    demo: Settings, base: Runs, other: Runs
) -> None:
    """A base that was trained on both, as when sessions change machines."""
    base_there = elsewhere(entries(demo, BASE, [22.6, 22.7, 22.8]))
    result = finding(demo, CLAIM, base, base_there, other)
    assert (result.verdict, result.runs) == ("held", "3 against 3")
    assert result.value == pytest.approx(0.4)
    # Of two that have all, it is the one with most runs of the table, then the last by name.
    here = [base, other]
    other_there = elsewhere(entries(demo, NO_SOURCE, [24.0] * 3))
    there = [base_there, other_there]
    more = entries(demo, NO_TARGET, [21.0])
    published = [changed(runs, origin="theirs") for runs in there]
    for runs, value in (
        ([*here, *there], -1.3),
        ([*there, *here, more], 0.4),
        ([*published, *here], 0.4),  # one's own come before the published ones
    ):
        assert finding(demo, CLAIM, *runs).value == pytest.approx(value)


def test_processors_of_equal_perplexities_are_one(
    demo: Settings, base: Runs, other: Runs
) -> None:
    """A training that both have made tells: to the last digit, or they stay two.

    Each precision has kernels of its own, and so has each kind of network.
    """

    def trained(*perplexities: float) -> Runs:
        return entries(demo, BASE, perplexities, column="ppl", measure="perplexity")

    here = trained(4.766, 4.8)
    equal = [*here, *elsewhere(here)]
    lstm = {"trained": {"architecture": {"kind": "lstm"}}}
    bf16 = {"trained": {"training": {"precision": "bf16"}}}
    for trainings, verdict in (
        (equal, "held"),
        (here, "no verdict"),
        ([*here, *elsewhere(trained(4.7660000000001))], "no verdict"),
        ([*here, *elsewhere(trained(4.766, 4.9))], "no verdict"),
        ([here[0], *elsewhere(here[1:])], "no verdict"),
        (changed(equal, inputs=lstm), "no verdict"),
        (changed(equal, inputs=bf16), "no verdict"),
    ):
        result = finding(demo, CLAIM, base, elsewhere(other), trainings)
        assert result.verdict == verdict


VERDICTS = """
 => not run
not run, not run => not run
held, not run => held
held, undecided => undecided
held, undecided, not held => not held
no verdict, not run => no verdict
no verdict, held => held
"""


def test_a_claim_is_all_of_its_comparisons() -> None:
    for verdicts, expected in rows(VERDICTS):
        found: Any = verdicts.split(", ")
        assert verdict_of(found) == expected, verdicts


def test_the_finding_that_decides_stands_beside_the_claim(demo: Settings) -> None:
    held = Finding("a", "held", 0.5, note="of a")
    lost = Finding("b", "not held", -0.3, note="of b", interval=(-0.5, -0.1))
    columns = ("Comparisons", "Difference", "95% interval", "Notes")
    for last, line in (
        (lost, ["-0.30", "-0.50 to -0.10", ""]),
        (replace(lost, p_reversal=0.01), ["", "", "of b"]),
    ):
        claim = JudgedClaim("mine", "rises", "a paper", "not held", (held, last), None)
        (row,) = printed_claims(demo, [claim])[0].rows
        assert [row[column] for column in columns] == ["1 held, 1 not held", *line]


def test_all_formats_say_the_same(demo: Settings, tmp_path: Path) -> None:
    scale = demo.scale.model_copy(update={"seeds_of": {"table4": 3}})
    demo = replace(demo, scale=scale)
    planned = [cell for cell in cells(demo, "table4") if cell.measure == "perplexity"]
    lines = []
    for cell, first in zip(planned, (6.0, 6.6), strict=False):
        for seed, run in enumerate(cell.records):
            # The cells that a line names were those of another configuration.
            (planted,) = entries(demo, BASE, [first + seed / 100], measure="perplexity")
            made = replace(planted, fingerprint=run.fingerprint, inputs=run.inputs)
            lines.append(made.line())
    ledger = tmp_path / "ledger.jsonl"
    write_lines(ledger, lines)
    page, table, data = outputs = [
        tmp_path / f"claims.{end}" for end in ("md", "csv", "json")
    ]
    write_claims(demo, ledger=ledger, outputs=outputs)
    says(
        page.read_text("utf-8"),
        "**STAND-IN DATA: generated sentences",
        "| held | +0.60 | +0.",
        "| 1 held, 1 not run |",
        *(f"| {name} |" for name in demo.claims),
    )
    frame = pd.read_csv(table, keep_default_na=False)
    assert set(frame["Scale"]) == {"demo (STAND-IN DATA)"}
    assert set(frame["Claim"]) == demo.claims.keys()
    claims = json.loads(data.read_text("utf-8"))["claims"]
    judged = {one["name"]: one for one in claims}
    assert judged["positions_help"]["verdict"] == "held"
    assert judged["positions_help"]["findings"][0]["value"] == pytest.approx(0.6)
    assert judged["beam_5_beats_1"]["verdict"] == "not run"
    assert judged["attention_is_cheap"]["verdict"] == "not tested"
