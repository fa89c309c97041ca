"""What a page needs to show attention: its style, and its program.

The program gives the page ``showAttention(element, map)``; the map is what an attention map's
``as_json`` returns. It builds nothing from text but text, so that a token cannot be markup, and
works under a policy that forbids inline styles.
"""

from importlib.resources import files

_PACKAGE = "convs2s.attention_view"


def style() -> str:
    """Return the CSS, whose colors are the page's: --ink, --faint, --line, --link, --raised."""
    return _data("attention.css")


def program() -> str:
    """Return the JavaScript."""
    return _data("attention.js")


def _data(name: str) -> str:
    return files(_PACKAGE).joinpath("data", name).read_text("utf-8")
