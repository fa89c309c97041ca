"""Figure 3 from a trained model, at a scale whose sentence is a line of a test set."""

import json

from tests.support.checkout import Checkout

SCALE = """\
description: figure 3 from the model of one's own language pair
results_dir: results
downloads_dir: results/downloads
tasks: {wmt14_en_de_bpe80k: mine_en_nl}
models: {attention_plot: small}
tests: {newstest2014: test}
example_line: 10
"""
EXAMPLE = "results/mine_en_nl/models/small/seed1/test.beam5.example.json"
FIGURE = "results/paper/figure3.svg"


def test_figure_3_shows_a_line_of_the_test_set(finished: Checkout) -> None:
    finished.write("config/scales/figure.yaml", SCALE)
    done = finished.snakemake("--config", "scale=figure", "--", FIGURE).succeeded()
    assert "train_model" not in done.planned
    lines = (finished / "data/mine/test.en").read_text("utf-8").splitlines()
    shown = json.loads((finished / EXAMPLE).read_text("utf-8"))
    assert shown["source"] == lines[9]
    assert (finished / FIGURE).read_text("utf-8").startswith("<svg")
