"""The LSTM paper's tables and figures from trained models, at a scale made for a test."""

import pandas as pd
import pytest

from tests.support.checkout import Checkout
from tests.support.own_pair import TINY

PAPER = "results/scales/demo/paper"
RUNS = "results/scales/demo/demo_en_fr_word/models"
EXHIBITS = ("table1", "table2", "figure2", "figure3", "text")
TABLES = [f"{PAPER}/lstm_{name}.md" for name in EXHIBITS]
LISTED = "demo_wmt16_en_ro"
LSTM = {"architecture": {"cells": 16, "embedding": 16}, "training": TINY["training"]}


def scores() -> list[str]:
    """What the tables' cells rest on, figure 2's aside."""
    singles = [f"{model}/seed1" for model in ("demo_lstm", "demo_lstm_forward")]
    five = "demo_lstm/ensemble3"
    decoded = {"lstm_beam1": [five], "lstm_beam2": [five]}
    decoded["lstm_beam12"] = [*singles, "demo_lstm/ensemble2", five]
    files = [
        f"{run}/test.{name}.bleu.json" for name, runs in decoded.items() for run in runs
    ]
    files += [f"{run}/test.rescored.bleu.json" for run in (*singles, five)]
    files += [f"{run}/test.perplexity.json" for run in singles]
    return [f"{RUNS}/{file}" for file in files]


@pytest.mark.slow
def test_every_exhibit_of_the_lstm_is_made(checkout: Checkout) -> None:
    overrides = {
        "models": {LISTED: TINY, "demo_lstm": LSTM},
        "decodings": {"list20": {"beam": 4}},
    }
    checkout.configure(
        {"scale": "demo", "device": "cpu", "cores": 1, "overrides": overrides}
    )
    figures = [f"{PAPER}/lstm_figure{number}.svg" for number in (2, 3)]
    checkout.snakemake("--", *figures, *scores()).succeeded()
    checkout.snakemake("--", *TABLES).succeeded()
    for path in TABLES:
        table = (checkout / path).read_text("utf-8")
        assert "STAND-IN DATA" in table
        assert "not run" not in table
        rows = pd.read_csv(checkout / path.replace(".md", ".csv"), dtype=str)
        assert rows.filter(like="(ours)").notna().to_numpy().sum() > 1, table
    listed = f"{LISTED} seed1, list20"
    rescored = pd.read_csv(checkout / f"{PAPER}/lstm_table2.csv")
    assert rescored["Test set"].str.endswith(f"list of {listed}").sum() == 5
    points = pd.read_csv(checkout / f"{PAPER}/lstm_figure3.points.csv")
    assert set(points["curve"]) == {"demo_lstm ensemble3, lstm_beam12", listed}
