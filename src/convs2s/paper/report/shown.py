"""Pages of Snakemake's report: it shows HTML, and offers other text for download alone."""

import html
from pathlib import Path

from convs2s.files.text import atomic_text, read_lines

_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 1em; background: Canvas; color: CanvasText; }}
pre {{ font: 14px/1.4 ui-monospace, monospace; }}
</style>
<pre>{text}</pre>
</html>
"""


def show_in_report(*, source: Path, output: Path) -> None:
    """Write a page that shows a text as it stands; a page stays the one that it is.

    Args:
        source: plain text, Markdown, or HTML.
        output: the page to write.

    Raises:
        UserError: the source is missing or not UTF-8.
    """
    text = "".join(f"{line}\n" for line in read_lines(source))
    is_page = source.suffix == ".html"
    with atomic_text(output) as stream:
        title = html.escape(source.name)
        stream.write(text if is_page else _PAGE.format(title=title, text=html.escape(text)))
