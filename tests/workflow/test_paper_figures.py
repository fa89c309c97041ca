"""Figure 3 from a trained model, at a scale whose sentence is a line of a test set."""

from tests.support.checkout import Checkout
from tests.support.mirror import QUICK

FIGURE = "results/scales/demo/paper/figure3.svg"


def test_figure_3_shows_a_line_of_the_test_set(checkout: Checkout) -> None:
    stated = {"models": {"demo_attention_plot": QUICK}}
    options = {"scale": "demo", "device": "cpu", "cores": 1, "shards": 1}
    checkout.configure({**options, "overrides": stated})
    done = checkout.snakemake("--", FIGURE)
    assert done.code == 0, done.said[-3000:]
    assert (checkout / FIGURE).read_text("utf-8").startswith("<svg")
