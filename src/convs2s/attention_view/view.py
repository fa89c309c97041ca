"""What a page needs to show attention: its style, its program, and each map as plain data.

The program gives the page ``showAttention(element, map)``. It builds nothing from text but text, so
that a token cannot be markup, and works under a policy that forbids inline styles.
"""

from importlib.resources import files

import numpy as np

from convs2s.decoding.attention import AttentionMap

_PACKAGE, _DIGITS = "convs2s.attention_view", 4


def style() -> str:
    """Return the CSS, whose colors are the page's: --ink, --faint, --line, --link, --raised."""
    return _data("attention.css")


def program() -> str:
    """Return the JavaScript."""
    return _data("attention.js")


def as_json(attention: AttentionMap) -> dict[str, object]:
    """Return what the program draws: the tokens of both sides and (layers, n, m) weights."""
    weights = np.round(attention.weights.astype(np.float64), _DIGITS).tolist()
    return {"source": attention.source, "target": attention.target, "weights": weights}


def _data(name: str) -> str:
    return files(_PACKAGE).joinpath("data", name).read_text("utf-8")
