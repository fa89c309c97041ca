"""A ConvS2S decoder whose incremental state stays where it is in memory, as a recording needs it.

Shapes: B sentences, K hypotheses of each, m source length, f embedding width.
"""

import torch
from torch import Tensor

from convs2s.models.convs2s_inference import ConvS2SIncrementalState, InferenceConvS2S


class InPlaceConvS2SState(ConvS2SIncrementalState):
    """A state of fixed shapes; position and order of the rows are tensors too.

    The attention of a step is as long as the source padded to whole vectors.
    """

    def __init__(self, network: InferenceConvS2S, source: Tensor, hypotheses: int) -> None:
        """Encode padded source indices (B, m), to decode K hypotheses of each."""
        encoded = network.encode(source)
        super().__init__(network, encoded, encoded.keys.shape[1], hypotheses)
        self._place = source.new_zeros(1)  # the next token's position
        self._rows = torch.arange(len(source) * hypotheses, device=source.device)

    def restart(self, source: Tensor) -> None:
        """Begin with another source, which has the shape of the first once both are padded."""
        self._source.replace(self._network.encode(source))
        self._inputs.clear()
        self._place.zero_()
        torch.arange(len(self._rows), out=self._rows)

    def _enter(self, tokens: Tensor) -> Tensor:
        """Move all windows to the next position, and embed the tokens (B * K,) that stand there."""
        self._inputs.shift(self._rows)
        embedded = self._network.embedding.at_place(self._place, tokens)
        self._place.add_(1)
        return embedded

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        self._rows.copy_(rows)

    def keep(self, sentences: Tensor) -> None:
        """Refuse: every sentence stays in the batch until all are done."""
        raise NotImplementedError("a state that stays in place keeps all sentences")
