"""Build a network from the description of its architecture."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from convs2s.config.architecture import (
    ConvS2SArchitecture,
    LstmArchitecture,
    NetworkSettings,
    RnnArchitecture,
)
from convs2s.config.extensions import run_rest
from convs2s.models.convs2s import ConvS2S
from convs2s.models.lstm import Lstm
from convs2s.models.network import Network
from convs2s.models.rnn import Rnn


def build_network(
    architecture: NetworkSettings,
    source_types: int,
    target_types: int,
) -> Network:
    """Return a freshly initialized network for vocabularies of these sizes."""
    if isinstance(architecture, ConvS2SArchitecture):
        return ConvS2S(architecture, source_types, target_types)
    if isinstance(architecture, LstmArchitecture):
        return Lstm(architecture, source_types, target_types)
    if isinstance(architecture, RnnArchitecture):
        return Rnn(architecture, source_types, target_types)
    # This is the architecture of an extension. So far, only the part of the extension's file above
    # ``import torch`` has run. The rest of the file defines the network.
    run_rest(type(architecture))
    network: Network = architecture.build(source_types, target_types)
    return network


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Within this context, build networks that take no memory: tensors with shapes but no data."""
    with torch.device("meta"), _NothingDrawn():
        yield


class _NothingDrawn(TorchFunctionMode):
    """Skips the initialization of parameters.

    On the meta device, torch loads its compiler to draw random numbers, which takes two seconds.
    """

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        """Call a function of torch, or skip it if it only initializes a parameter."""
        draws = (Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_)
        if func in draws:
            return args[0] if args else kwargs["tensor"]
        if func is Tensor.norm:
            # Weight normalization takes the norm of each row of its initial weight. A column of the
            # weight has the same shape as these norms.
            return args[0][:, 0]
        return func(*args, **(kwargs or {}))
