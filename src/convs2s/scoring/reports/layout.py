"""Reports as JSON and, from what that holds, as plain text."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from convs2s.files.text import write_json, write_text
from convs2s.scoring.text_table import aligned, underlined


@dataclass(frozen=True)
class Report:
    """Where a report goes, as text and as JSON, and how it begins."""

    text: Path
    json: Path
    stand_in: str | None  # what the data is where it is not the paper's
    header: Mapping[str, str]  # what the report is about

    def write(
        self,
        template: str,
        **content: object,
    ) -> None:
        """Write both, the text by a template of ``data/`` from what the JSON holds."""
        write_json(self.json, {"stand_in": self.stand_in, **self.header, **content})
        beginning = {"stand_in": self.stand_in, "header": self.header}
        write_text(self.text, render_text(template, **beginning, **content))


def render_text(template: str, **content: object) -> str:
    """Return a text by a template of ``data/``.

    The filter ``underlined`` makes a heading of its line; ``aligned`` makes a table of lines whose
    cells end at bars.
    """
    environment = Environment(
        loader=PackageLoader("convs2s.scoring.reports", "data"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

    def aligned_lines(text: str) -> str:
        header, *rows = [line.split("|") for line in text.splitlines()]
        return "\n".join(aligned(header, rows)) + "\n"

    environment.filters["aligned"] = aligned_lines
    environment.filters["underlined"] = lambda line: "\n".join(underlined(line.strip())) + "\n"
    return environment.get_template(template).render(content)
