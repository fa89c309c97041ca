"""The page that asks the server: one file that fetches nothing else."""

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import NamedTuple

from convs2s.attention_view import view

_PACKAGE = "convs2s.serving"
_PLACE = re.compile(r"\{\{(\w+)\}\}")


class ServedPage(NamedTuple):
    """A page and what a browser may do with it.

    Attributes:
        content: the HTML, UTF-8.
        policy: its Content-Security-Policy: it runs and shows what it holds, and asks its server.
    """

    content: bytes
    policy: str


def served_page(texts: Mapping[str, str]) -> ServedPage:
    """Return the page.

    Args:
        texts: what stands in its places; they are escaped.
    """
    style = view.style() + _data("page.css")
    program = view.program() + _data("page.js")
    shown = {name: html.escape(text) for name, text in texts.items()}
    places = {**shown, "style": style, "program": program}
    content = _PLACE.sub(lambda found: places[found[1]], _data("page.html"))
    policy = (
        f"default-src 'none'; script-src '{_digest(program)}'; style-src '{_digest(style)}'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return ServedPage(content.encode(), policy)


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def _data(name: str) -> str:
    return files(_PACKAGE).joinpath("data", name).read_text("utf-8")
