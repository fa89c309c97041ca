"""The optimizers, their learning rate, and their state as named tensors."""

from collections.abc import Iterator, Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from convs2s.config.model import Recipe

_VELOCITY = "momentum_buffer"


def build_optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the recipe's optimizer over the network's parameters.

    ``nesterov`` is the paper's (section 4.2), ``sgd`` the LSTM's (Sutskever et al. 2014, section
    3.4); ``adam`` is for small corpora, with the decay rates usual in translation.
    """
    parameters = list(network.parameters())
    if recipe.optimizer == "adam":
        return torch.optim.Adam(parameters, recipe.learning_rate, betas=(0.9, 0.98), fused=True)
    momentum = recipe.momentum if recipe.optimizer == "nesterov" else 0.0
    nesterov = momentum > 0.0
    return torch.optim.SGD(
        parameters, recipe.learning_rate, momentum, nesterov=nesterov, fused=True
    )


def set_learning_rate(
    optimizer: torch.optim.Optimizer, learning_rate: float, velocity: Literal["keep", "rescale"]
) -> None:
    """Set the learning rate; torch's velocity is in units of the gradient.

    A step is learning rate x velocity, so leaving the velocity rescales the step with the rate
    (fairseq), and dividing it by the rate's change keeps the step (fairseq-lua).
    """
    (group,) = optimizer.param_groups
    if learning_rate != group["lr"] and velocity == "keep":
        for state in optimizer.state.values():
            if _VELOCITY in state:
                state[_VELOCITY].mul_(group["lr"] / learning_rate)
    group["lr"] = learning_rate


def optimizer_tensors(
    optimizer: torch.optim.Optimizer, network: nn.Module
) -> Iterator[tuple[str, Tensor]]:
    """Yield the optimizer's state, each tensor named ``KEY.PARAMETER``."""
    for name, parameter in network.named_parameters():
        for key, value in optimizer.state[parameter].items():
            yield f"{key}.{name}", value


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    network: nn.Module,
    tensors: Mapping[str, Tensor],
    learning_rate: float,
) -> None:
    """Take up the state that ``optimizer_tensors`` gave, at the learning rate of its last step."""
    parameters = dict(network.named_parameters())
    for name, tensor in tensors.items():
        key, parameter = name.split(".", 1)
        optimizer.state[parameters[parameter]][key] = tensor
    (group,) = optimizer.param_groups
    group["lr"] = learning_rate
