"""``rouge`` of a task: how its test sets are scored as summaries."""

from typing import Literal

from convs2s.config.fields import PositiveInt
from convs2s.config.section import Section

RougePart = Literal["recall", "precision", "f1"]


class RougeSettings(Section):
    """How ROUGE scores a test set (docs/rouge.md)."""

    bytes: PositiveInt | None = None
    """Bytes of UTF-8 to which outputs and references are cut first (DUC-2004: 75); null: none."""
    stem: bool = True
    """Whether words are stemmed (the original's -m)."""
    measure: RougePart = "f1"
    """What a report's first lines show; its tables have all three (DUC-2004: recall)."""
    lead_words: PositiveInt = 9
    """Words of the lead baseline: the source's first ones, scored like an output."""
