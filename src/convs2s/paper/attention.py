"""Where each decoder layer looks while it writes one sentence (the paper's figure 3)."""

from collections.abc import Sequence
from pathlib import Path

from convs2s.decoding.attention import attention_of
from convs2s.paper.attention_numbers import write_attention
from convs2s.paper.figures import attention_maps


def plot_attention(
    *, model: Path, translations: Path, line: int, outputs: Sequence[Path], numbers: Path
) -> None:
    """Draw the attention of one line of a decoded test set, and write what is drawn as JSON.

    Args:
        model: the model file that decoded it.
        translations: the decoder's JSON lines.
        line: its number from 1.
        outputs: where to write the figure; the suffix says the format (.svg, .png).
        numbers: the JSON file.

    Raises:
        UserError: the test set has no such line, or the model has no attention.
    """
    attention = attention_of(model, translations, line)
    write_attention(attention.weights, attention.source, attention.target, numbers)
    attention_maps(attention.weights, attention.source, attention.target, outputs)
