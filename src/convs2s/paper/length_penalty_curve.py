"""How BLEU on a development set depends on the length penalty (section 4.3)."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from convs2s.errors import failures_of_file
from convs2s.paper.plotting import ring, save, style

# of Okabe and Ito's palette, which all eyes tell apart
_BLEU = {"tokenized": "#0072b2", "detokenized": "#d55e00"}
_RATIO = "#444444"


def plot_length_penalty(
    *, table: Path, tuning: Path, heading: str, outputs: Sequence[Path]
) -> None:
    """Draw both BLEU scores and the length ratio by the length penalty.

    Args:
        table: the tuning's TSV file.
        tuning: its JSON file, which says what was chosen.
        heading: which decoding of which run.
        outputs: where to write the figure; the suffix says the format (.svg, .png).
    """
    with failures_of_file(str(table), "no table of a tuning; delete it and tune again"):
        points = pd.read_csv(table, sep="\t", dtype=float)
    with failures_of_file(str(tuning), "no tuning of a length penalty; delete it and tune again"):
        chosen = json.loads(tuning.read_bytes())
        alpha, score = chosen["length_penalty"], chosen["tokenized_bleu"]["score"]
    with style():
        figure = Figure(figsize=(7, 5), layout="constrained")
        figure.suptitle(heading, fontsize=8)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        for kind, color in _BLEU.items():
            column = points[f"{kind}_bleu"]
            upper.plot(points["length_penalty"], column, color=color, marker=".", label=kind)
        ring(upper, alpha, score, _BLEU["tokenized"], f"chosen: {score:.2f} at {alpha:g}")
        upper.set_ylabel(f"BLEU on {chosen['test_set']}, {chosen['lines']} lines")
        upper.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
        lower.plot(points["length_penalty"], points["length_ratio"], color=_RATIO, marker=".")
        lower.axhline(1, color=_RATIO, linewidth=0.8, linestyle=":", zorder=1)
        lower.set(xlabel="length penalty", ylabel="length ratio")
        save(figure, outputs)
