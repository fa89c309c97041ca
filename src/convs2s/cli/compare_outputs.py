"""``convs2s compare-outputs``: two systems' translations side by side."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from convs2s.cli.common import write_utf8
from convs2s.files.text import read_lines

if TYPE_CHECKING:
    from convs2s.scoring.comparison import OutputComparison

_SHOWN_LINES = 100
"""Lines that are shown where nothing else is asked for."""


def add_compare_outputs(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Print two systems' translations side by side, the words marked in which they differ: the "
        "lines whose own BLEU differs most, from the largest gain to the largest loss; and BLEU of "
        "the whole with a paired bootstrap."
    )
    command.add_argument("baseline", type=Path, help="file of one system's lines")
    command.add_argument("system", type=Path, help="file of the other system's lines")
    command.add_argument(
        "--reference", type=Path, action="append", required=True, help="of several, give each so"
    )
    command.add_argument("--source", type=Path, help="file of what was translated, to be shown")
    command.add_argument(
        "--tokenized", action="store_true", help="words are what spaces separate (multi-bleu)"
    )
    command.add_argument("--html", action="store_true", help="print a page, not plain text")
    command.add_argument(
        "--most", type=int, default=_SHOWN_LINES, help=f"lines to show [{_SHOWN_LINES}]"
    )
    command.set_defaults(run=_compare_outputs)


def _compare_outputs(arguments: argparse.Namespace) -> None:
    from convs2s.scoring.comparison import compare_outputs

    baseline, system, source = (
        None if path is None else list(read_lines(path))
        for path in (arguments.baseline, arguments.system, arguments.source)
    )
    assert baseline is not None
    assert system is not None
    comparison = compare_outputs(
        baseline,
        system,
        *(list(read_lines(path)) for path in arguments.reference),
        kind="tokenized" if arguments.tokenized else "detokenized",
        names=(str(arguments.baseline), str(arguments.system)),
        most=arguments.most,
        source=source,
    )
    write_utf8()
    if arguments.html:
        print(outputs_page(comparison))
        return
    for line in comparison.as_text():
        print(line)


def outputs_page(comparison: "OutputComparison") -> str:
    """Return two systems' outputs side by side as a page that runs no program."""
    from convs2s.pages.render import asset, render_page

    styles = map(asset, ("page.css", "outputs_page.css"))
    return render_page("outputs_page.html.j2", {"comparison": comparison}, styles=styles)
