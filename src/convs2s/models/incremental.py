"""What a search asks of a network that decodes step by step, whichever it is.

Shapes: B sentences, K hypotheses of each, m source length.
"""

from typing import Protocol

from torch import Tensor

from convs2s.models.kernels.quantized_linear import LinearMap


class IncrementalState(Protocol):
    """A network's incremental state while it decodes one batch."""

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Read each hypothesis's last token (B, K).

        Returns:
            What enters the output layer (B, K, features), and the attention (B, K, m), the mean
            over the attending layers; None from a network without attention.
        """

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""


class InferenceNetwork(Protocol):
    """A network's weights in the form and precision that decoding needs.

    Attributes:
        output: the map from features to logits.
    """

    output: LinearMap

    def start(self, source: Tensor, hypotheses: int) -> IncrementalState:
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
