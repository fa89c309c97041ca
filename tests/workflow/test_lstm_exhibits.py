"""The LSTM paper's tables and figures from trained models, at a scale made for a test."""

import pandas as pd
import pytest

from tests.support.checkout import Checkout
from tests.support.own_pair import TINY

PAPER = "results/scales/demo/paper"
RUNS = "results/scales/demo/demo_en_fr_word/models"
LISTED = "demo_wmt16_en_ro"
LSTM = {"architecture": {"cells": 16, "embedding": 16}, "training": TINY["training"]}


@pytest.mark.slow
def test_every_exhibit_of_the_lstm_is_made(checkout: Checkout) -> None:
    overrides = {
        "models": {LISTED: TINY, "demo_lstm": LSTM},
        "decodings": {"list20": {"beam": 4}},
    }
    checkout.configure({"scale": "demo", "device": "cpu", "cores": 1, "overrides": overrides})
    beam, rescored = "test.lstm_beam12.bleu.json", "test.rescored.bleu.json"
    singles = [(model, "seed1") for model in ("demo_lstm", "demo_lstm_forward")]
    scores = [
        f"{RUNS}/{model}/{run}/{file}"
        for model, run in (*singles, ("demo_lstm", "ensemble3"))
        for file in (beam, rescored)
    ]
    figures = [f"{PAPER}/lstm_figure{number}.svg" for number in (2, 3)]
    made = checkout.snakemake("--", *figures, *scores)
    assert made.code == 0, made.said[-3000:]
    tables = [f"{PAPER}/lstm_{name}.md" for name in ("table1", "table2", "figure2", "figure3")]
    assert checkout.snakemake("--", *tables).code == 0
    written = {path: (checkout / path).read_text("utf-8") for path in tables}
    for path in tables:
        ours = pd.read_csv(checkout / path.replace(".md", ".csv"), dtype=str)
        values = ours.filter(like="(ours)").to_numpy().ravel()
        assert [one for one in values if str(one)[0].isdigit()], path
        assert "STAND-IN DATA" in written[path]
    assert f"list of {LISTED} seed1, list20" in written[tables[1]]
    points = pd.read_csv(checkout / f"{PAPER}/lstm_figure3.points.csv")
    assert set(points["curve"]) == {"demo_lstm ensemble3, lstm_beam12", f"{LISTED} seed1, list20"}
