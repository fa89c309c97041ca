"""Claims on how long translations are, and BLEU where lengths differ."""

from dataclasses import replace

import numpy as np
import pytest

from convs2s.config.settings import Settings
from convs2s.paper import claims
from convs2s.paper.ledger import LedgerEntry, RunScore
from convs2s.scoring.bleu import encode_statistics
from tests.support.claims import BASE, BEFORE, NO_SOURCE, better, entries, finding
from tests.support.statistics import bleu_of


def shortened(entry: LedgerEntry, ratio: float, seed: int) -> LedgerEntry:
    """An entry whose sentences have so large a share of the references' words."""
    order, words = np.random.default_rng(seed), np.full(300, 20)
    said = np.round(words * ratio + order.normal(0, 0.4, 300)).astype(int)
    matches = [np.round(np.maximum(said - n, 0) * 0.5).astype(int) for n in range(4)]
    statistics = np.stack([said, words, *matches], axis=1)
    scores = {BEFORE: RunScore(bleu_of(statistics), "nrefs:1")}
    return replace(
        entry, scores=scores, sentences={BEFORE: encode_statistics(statistics)}
    )


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.0, "held"), (0.9, "not held"), (1.1, "not held")]
)
def test_lengths_are_tested(demo: Settings, ratio: float, verdict: str) -> None:
    runs = [
        shortened(entry, ratio, seed)
        for seed, entry in enumerate(entries(demo, BASE, [0] * 3))
    ]
    # Lengths are those of any measure's sentences.
    runs = [
        replace(run, sentences={"bleu_tokenized": run.sentences[BEFORE]})
        for run in runs
    ]
    claim = {"lengths": [{"cells": [{"table": "table4", "row": BASE}], "within": 0.03}]}
    result = finding(demo, claim, runs)
    assert (result.verdict, result.test) == (verdict, claims.HIERARCHICAL)
    assert result.value == pytest.approx(ratio - 1, abs=0.01)
    assert result.measure == "Length ratio, less 1"


def test_where_lengths_differ_bleu_without_its_penalty_stands_beside(
    demo: Settings,
) -> None:
    base, other = (
        [
            shortened(entry, ratio, seed)
            for seed, entry in enumerate(entries(demo, row, [0] * 3))
        ]
        for row, ratio in ((BASE, 1.0), (NO_SOURCE, 0.9))
    )
    result = finding(demo, better(BASE, NO_SOURCE), base, other)
    assert result.without_brevity == pytest.approx(0.0, abs=0.5)
    assert result.value is not None
    assert result.value > 4
    again = [replace(entry, table_cells=other[0].table_cells) for entry in base]
    assert finding(demo, better(BASE, NO_SOURCE), base, again).without_brevity is None
    # That of detokenized BLEU is not known: the sentences are those of tokenized BLEU.
    group, measure = "WMT'16 English-Romanian", "bleu_detokenized"
    table = [(row.group, row.system) for row in demo.paper["table1"].rows]
    sides, plain = {}, list[LedgerEntry]()
    for side, row, runs in (
        ("better", "ConvS2S (Word 80K)", base),
        ("worse", "ConvS2S (BPE 40K)", other),
    ):
        sides[side] = [
            {"table": "table1", "group": group, "row": row, "column": "bleu"}
        ]
        plain += [
            replace(
                run,
                table_cells=(f"table1, row {table.index((group, row)) + 1}, bleu",),
                scores={measure: run.scores[BEFORE]},
                sentences={"bleu_tokenized": run.sentences[BEFORE]},
            )
            for run in runs
        ]
    result = finding(demo, {"comparisons": [sides]}, plain)
    assert (result.test, result.without_brevity) == (claims.HIERARCHICAL, None)


def test_a_column_of_lengths_is_tested_by_its_sentences(demo: Settings) -> None:
    base, other = (
        [
            replace(one, scores={"length_ratio": RunScore(ratio, None)})
            for one in (
                shortened(entry, ratio, seed)
                for seed, entry in enumerate(
                    entries(demo, row, [0] * 3, column="length", measure="length_ratio")
                )
            )
        ]
        for row, ratio in ((BASE, 1.0), (NO_SOURCE, 0.9))
    )
    result = finding(demo, better(BASE, NO_SOURCE, "length"), base, other)
    assert (result.verdict, result.test) == ("held", claims.HIERARCHICAL)
    assert result.without_brevity is None
    assert result.value == pytest.approx(0.1)
