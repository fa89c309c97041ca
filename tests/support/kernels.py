"""Maps and networks by ONNX Runtime, of torch's weights."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.models.convs2s import ConvS2S
from convs2s.models.onnx_builder import FLOATS, Graph
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import Weights
from convs2s.models.steps import Average, Precision


def onnx_map(
    weight: Tensor, bias: Tensor, precision: Precision
) -> Callable[[Tensor], Tensor]:
    """Return the map of a weight (outputs, inputs) and a bias (outputs,)."""
    graph = Graph(precision)
    x = graph.input("x", FLOATS, ["rows", weight.shape[1]])
    graph.output("y", graph.linear(x, weight.numpy(), bias.numpy()))
    session = graph.session()
    return lambda rows: torch.from_numpy(session.run(["y"], {"x": rows.numpy()})[0])


def onnx_ensemble(
    models: Sequence[ConvS2S],
    architecture: ConvS2SArchitecture,
    precision: Precision = "fp32",
    average: Average = "probabilities",
) -> OnnxEnsemble:
    """Return an ensemble of networks in float32 of one architecture."""
    weights = []
    for model in models:
        arrays = {
            name: tensor.numpy() for name, tensor in model.float().state_dict().items()
        }
        tables = (side.embedding.tokens for side in (model.encoder, model.decoder))
        weights.append(Weights(arrays, architecture, tuple(map(len, tables))))  # type: ignore[arg-type]
    return OnnxEnsemble(weights, precision, average)
