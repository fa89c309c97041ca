"""The form of a network that decoding runs: weights computed once, in the precision asked for."""

from functools import singledispatch

from convs2s.models.convs2s import ConvS2S
from convs2s.models.convs2s_inference import InferenceConvS2S
from convs2s.models.incremental import InferenceNetwork
from convs2s.models.kernels.quantized_linear import Precision
from convs2s.models.lstm import Lstm
from convs2s.models.lstm_inference import InferenceLstm
from convs2s.models.network import Network


@singledispatch
def for_inference(network: Network, precision: Precision) -> InferenceNetwork:
    """Return a network's weights as decoding needs them; they do not follow the network's.

    Args:
        network: of a kind that is registered here; it stays as it is.
        precision: ``fp32`` for that of its weights; ``int8`` for ConvS2S alone.
    """
    raise TypeError(f"no form for inference of {type(network).__name__}")


for_inference.register(ConvS2S, InferenceConvS2S)
for_inference.register(Lstm, InferenceLstm)
