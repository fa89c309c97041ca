"""The input functions of rules/paper_figures.smk."""

LAYERS_FIGURE, EXAMPLE_FIGURE = "figure2", "figure3"

# The figures of both papers that can be drawn, as far as config/paper.yaml has them.
DRAWN_FIGURES = [
    *(name for name in (LAYERS_FIGURE, EXAMPLE_FIGURE) if PLANNED.get(name)),
    *LSTM_FIGURES,
]


def in_report(caption, figure):
    """Where a figure of the paper stands in Snakemake's report, and under what text."""
    text = f"../workflow/report/{caption}.rst"
    return {"caption": text, "category": "figures", "labels": {"figure": figure}}


def text_of_example(wildcards):
    """The test set whose line is shown; no file where the paper's own sentence is."""
    return [test_side("raw", "source")(wildcards)] if scale.example_line else []


def examples_shown():
    """The sentence of the figure's first row, translated by its first run."""
    return PLANNED[EXAMPLE_FIGURE][0].paths[0]
