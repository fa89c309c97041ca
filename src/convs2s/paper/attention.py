"""Where each decoder layer looks while it writes one sentence (the paper's figure 3)."""

from collections.abc import Sequence
from pathlib import Path

from convs2s.decoding.attention import attention_of
from convs2s.paper.figures import attention_maps


def plot_attention(
    *, model: Path, translations: Path, line: int, heading: str, outputs: Sequence[Path]
) -> None:
    """Draw the attention of one line of a decoded test set.

    Args:
        model: the model file that decoded it.
        translations: the decoder's JSON lines.
        line: its number from 1.
        heading: whose attention it is.
        outputs: where to write the figure; the suffix says the format (.svg, .png).

    Raises:
        UserError: the test set has no such line, or the model has no attention.
    """
    attention = attention_of(model, translations, line)
    attention_maps(attention.weights, attention.source, attention.target, heading, outputs)
