"""The LSTM paper's tables and figures from trained models, at a scale made for a test."""

import json

import pandas as pd
import pytest

from convs2s.config.load import load
from convs2s.paper.cells import cells
from tests.support.checkout import Checkout
from tests.support.own_pair import TINY

PAPER = "results/scales/demo/paper"
EXHIBITS = ("table1", "table2", "figure2", "figure3", "text")
LISTED = "demo_wmt16_en_ro"
OPTIONS = f"""
scale: demo
device: cpu
cores: 1
overrides:
  models:
    {LISTED}: {json.dumps(TINY)}
    demo_lstm:
      architecture: {{cells: 16, embedding: 16}}
      training: {json.dumps(TINY["training"])}
  decodings: {{list20: {{beam: 4}}}}
"""


@pytest.mark.slow
def test_every_exhibit_of_the_lstm_is_made(checkout: Checkout) -> None:
    checkout.write("config.local.yaml", OPTIONS)
    settings = load(checkout.folder, {"scale": "demo"})
    shown = [cell for name in EXHIBITS for cell in cells(settings, f"lstm_{name}")]
    scores = {path for cell in shown for path in cell.paths}
    figures = [f"{PAPER}/lstm_figure{number}.svg" for number in (2, 3)]
    checkout.snakemake("--", *figures, *scores).succeeded()
    tables = [f"{PAPER}/lstm_{name}.md" for name in EXHIBITS]
    checkout.snakemake("--", *tables).succeeded()
    for path in tables:
        table = checkout.read(path)
        assert "STAND-IN DATA" in table
        assert "not run" not in table
        rows = pd.read_csv(checkout / path.replace(".md", ".csv"), dtype=str)
        assert rows.filter(like="(ours)").notna().to_numpy().sum() > 1, table
    listed = f"{LISTED} seed1, list20"
    rescored = pd.read_csv(checkout / f"{PAPER}/lstm_table2.csv")
    assert rescored["Test set"].str.endswith(f"list of {listed}").sum() == 5
    points = pd.read_csv(checkout / f"{PAPER}/lstm_figure3.points.csv")
    assert set(points["curve"]) == {"demo_lstm ensemble3, lstm_beam12", listed}
