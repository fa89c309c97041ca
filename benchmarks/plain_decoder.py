"""Beam search as one would first write it: a sentence at a time, the whole output again each step.

It is what the package's decoder is measured against, and passes the same tests.
"""

import math

import torch
from torch import Tensor

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.models.convs2s import ConvS2S, EncodedSource


@torch.inference_mode()
def plain_search(
    network: ConvS2S, source: Tensor, settings: DecodingSettings
) -> list[tuple[list[int], float]]:
    """Search for the outputs of one sentence.

    Args:
        network: in evaluation mode.
        source: (m,) indices that end in ``</s>``.
        settings: as the package's search has them; finished hypotheses are replaced.

    Returns:
        The tokens of each finished hypothesis without ``</s>`` and its score, the best first.
    """
    encoded = network.encode(source.unsqueeze(0))
    beam, maximum = settings.beam, _maximum_length(network, source, settings)
    hypotheses: list[tuple[list[int], float]] = [([], 0.0)]
    finished: list[tuple[list[int], float]] = []
    for length in range(maximum + 1):
        previous = torch.tensor([[END, *tokens] for tokens, _ in hypotheses])  # (K, t)
        features, _ = network.decoder(previous, _repeated(encoded, len(hypotheses)))
        predictions = network.decoder.output(features[:, -1]).log_softmax(1)  # (K, V)
        _constrain(predictions, length, maximum, settings)
        totals = predictions + torch.tensor([[total] for _, total in hypotheses])
        best = totals.flatten().topk(2 * beam)
        going: list[tuple[list[int], float]] = []
        for place, (total, index) in enumerate(
            zip(*map(Tensor.tolist, best), strict=True)
        ):
            parent, token = divmod(index, predictions.shape[1])
            tokens = hypotheses[parent][0]
            if token != END:
                going.append(([*tokens, token], total))
            elif place < beam and math.isfinite(total):
                finished.append((tokens, total / (length + 1) ** settings.alpha))
        hypotheses = going[:beam]
        if len(finished) >= beam:
            break
    return sorted(finished[:beam], key=lambda one: -one[1])


def _maximum_length(
    network: ConvS2S, source: Tensor, settings: DecodingSettings
) -> int:
    """Return the most tokens of a sentence's output, ``</s>`` not counted."""
    limit = settings.maximum_length
    maximum = int((len(source) - 1) * limit.factor) + limit.offset
    positions = network.positions["target"]
    return maximum if positions is None else min(maximum, positions - 1)


def _constrain(
    predictions: Tensor, length: int, maximum: int, settings: DecodingSettings
) -> None:
    """Bar from predictions (K, V) what may not come next after ``length`` tokens."""
    predictions[:, PADDING] = -torch.inf
    predictions[:, UNKNOWN] -= settings.unknown_penalty
    if length < min(settings.minimum_length, maximum):
        predictions[:, END] = -torch.inf
    if length == maximum:
        ending = predictions[:, END].clone()
        predictions.fill_(-torch.inf)
        predictions[:, END] = ending


def _repeated(encoded: EncodedSource, times: int) -> EncodedSource:
    """Return the source of one sentence for each of its hypotheses."""
    return EncodedSource(*(part.expand(times, *part.shape[1:]) for part in encoded))
