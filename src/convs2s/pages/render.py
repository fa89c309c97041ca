"""Templates of pages with the programs and styles in them, and what a policy knows those by.

The program ``attention_view.js`` gives a page ``showAttention(element, map)``; the map is what an
attention map's ``as_json`` returns. It builds nothing from text but text, so that a token cannot be
markup, and its style takes the page's colors: --ink, --faint, --line, --link, --raised.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from convs2s.files.text import read_lines, write_text

_PACKAGE = "convs2s.pages"
_ENDS_A_SCRIPT = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)


def script(source: str) -> Markup:
    """Return a JavaScript source that cannot end the script element that it stands in."""
    return Markup(_ENDS_A_SCRIPT.sub(r"\\x3C", source.replace("\r\n", "\n")))


def policy_digest(text: str) -> str:
    """Return what a Content-Security-Policy allows an inline program or style by, and no other."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def asset(name: str) -> str:
    """Return a program or a style sheet of this project."""
    return files(_PACKAGE).joinpath("data", name).read_text("utf-8")


def render_page(
    template: str,
    content: Mapping[str, object],
    *,
    programs: Iterable[str] = (),
    styles: Iterable[str] = (),
) -> str:
    """Return a page: a template with its content, every text of which is escaped.

    ``programs`` are JavaScript, in the order to run; of ``styles`` the later one wins.
    """
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "data"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["policy_digest"] = policy_digest
    return environment.get_template(template).render(
        **content,
        programs=list(map(script, programs)),
        styles=list(map(Markup, styles)),
    )


def show_in_report(*, source: Path, output: Path) -> None:
    """Write a page of Snakemake's report, which shows HTML but only offers text for download.

    Plain text or Markdown is shown as it stands; a page stays as it is.
    """
    text = "".join(f"{line}\n" for line in read_lines(source))
    if source.suffix != ".html":
        text = render_page("text.html.j2", {"title": source.name, "text": text})
    write_text(output, text)
