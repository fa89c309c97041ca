"""What all plots share: one look, text in any script, files that differ only when numbers do."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType

from convs2s.files.atomic import atomic_path

_FONT = "DejaVu Sans"  # comes with matplotlib, so that every machine draws the same

_STYLE: dict[RcKeyType, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "axes.labelsize": "medium",
    "font.sans-serif": [_FONT],
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 150,
    # element names in an SVG are random without a salt
    "svg.hashsalt": "convs2s",
    # text as text: a browser finds and copies it, and has fonts for scripts that are missing here
    "svg.fonttype": "none",
    # a dollar sign in a word is no formula
    "text.parse_math": False,
}

COLUMN_WIDTH = 3.3
"""Inches: of a column of a paper of two columns, at which its figures are printed."""

COLUMN_FONT = 7
"""Points: of the text of a figure of that width."""

_DATES = {".svg": ("Date",), ".pdf": ("CreationDate",)}


@dataclass(frozen=True)
class Look:
    """How a curve or a group of points is drawn."""

    color: str
    marker: str
    linestyle: str


LOOKS = (Look("#0072b2", "o", "-"), Look("#d55e00", "s", "--"), Look("#009e73", "^", ":"))
"""Looks that are told apart without color too; the colors are Okabe and Ito's."""


@contextmanager
def style(text: Iterable[str] = (), size: float = 9) -> Iterator[None]:
    """Set the look of the figures made and saved in the block, with fonts for ``text``.

    Args:
        text: what the figures say that may be of any script.
        size: of the letters, in points.
    """
    families = [_FONT, *_other_fonts("".join(text)), "sans-serif"]
    with matplotlib.rc_context({**_STYLE, "font.family": families, "font.size": size}):
        yield


def ring(axes: Axes, x: float, y: float, color: str, label: str) -> None:
    """Draw a ring around a point of a curve."""
    axes.plot(
        x,
        y,
        color=color,
        linestyle="",
        marker="o",
        markersize=9,
        markerfacecolor="none",
        markeredgewidth=1.5,
        label=label,
    )


def note_stand_in(figure: Figure, stand_in: str | None) -> None:
    """Write above a figure what its data is, where it is not the paper's."""
    if stand_in:
        figure.suptitle(f"STAND-IN DATA: {stand_in}", fontsize=7, wrap=True)


def save(figure: Figure, outputs: Sequence[Path]) -> None:
    """Write a figure to each path, in the format of its suffix."""
    for output in outputs:
        # without its date the same figure has the same bytes
        metadata = dict.fromkeys(_DATES.get(output.suffix, ()))
        with atomic_path(output) as temporary:
            figure.savefig(temporary, metadata=metadata)


def _other_fonts(text: str) -> list[str]:
    """Return installed fonts that together hold as many as can be of the other characters."""
    plain = sorted(
        (font.name, font.fname)
        for font in font_manager.fontManager.ttflist
        # the last resort holds a box for every character there is
        if font.style == "normal" and not font.name.startswith("Last Resort")
    )
    missing = {ord(character) for character in text} - _characters(font_manager.findfont(_FONT))
    families = []
    for family, path in plain if missing else ():
        found = missing & _characters(path)
        if found:
            families.append(family)
            missing -= found
    return families


def _characters(path: str) -> set[int]:
    return set(font_manager.get_font(path).get_charmap())
