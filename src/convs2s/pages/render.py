"""HTML pages from templates, with their JavaScript programs and style sheets inside.

The program ``attention_view.js`` defines ``showAttention(element, map)`` for a page, where ``map``
is what ``AttentionMap.as_json`` returns. The program inserts tokens as text only, so that a token
cannot become markup. Its style sheet uses the colors of the page, which must define --ink, --faint,
--line, --link and --raised.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from convs2s.files.text import read_lines, write_text

_DATA = Path(__file__).with_name("data")
_ENDS_A_SCRIPT = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)


def script(source: str) -> Markup:
    r"""Return a JavaScript program that cannot end or break the script element around it.

    The ``<`` of ``</script``, ``<script`` and ``<!--`` becomes ``\x3C``. A program has these only
    in strings and regular expressions, where ``\x3C`` means the same as ``<``.
    """
    return Markup(_ENDS_A_SCRIPT.sub(r"\\x3C", source.replace("\r\n", "\n")))


def policy_digest(text: str) -> str:
    """Return the digest that allows this inline program or style in a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def asset(name: str) -> str:
    """Return the text of a program or style sheet of this package."""
    return (_DATA / name).read_text("utf-8")


def render_page(
    template: str,
    content: Mapping[str, object],
    *,
    programs: Iterable[str] = (),
    styles: Iterable[str] = (),
) -> str:
    """Return a page from a template.

    Args:
        template: name of a template of this package.
        content: variables of the template; all texts in them are escaped.
        programs: JavaScript programs, in the order in which the page runs them.
        styles: style sheets; a later one overrides an earlier one.
    """
    environment = Environment(
        loader=FileSystemLoader(_DATA),
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
    """Write an HTML page that shows a file in Snakemake's report.

    The report shows HTML, but offers other text for download only. So plain text and Markdown are
    put into a page, unformatted. An HTML file is copied.
    """
    text = "".join(f"{line}\n" for line in read_lines(source))
    if source.suffix != ".html":
        text = render_page("text.html.j2", {"title": source.name, "text": text})
    write_text(output, text)
