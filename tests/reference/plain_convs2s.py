"""ConvS2S as the paper's formulas have it (section 3), one sentence at a time, in plain torch.

It knows the names of the weights and nothing else of the package: no padding, no windows, no fused
operations. What autograd makes of it are the gradients that training has to follow.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

Weights = Mapping[str, Tensor]

HALF = 0.5**0.5

ENCODER_STACK = ("encoder.in_projection", "encoder.blocks", "encoder.out_projection")
"""How the names of the weights begin whose gradients ConvS2S scales (section 3.5)."""


class PlainConvS2S:
    """Some weights, and how they are read.

    Attributes:
        weights: by the names of the network's ``state_dict``.
        gradient_factor: of the gradient that enters the encoder's stack from the attention.
    """

    def __init__(self, weights: Weights, gradient_factor: float = 1.0) -> None:
        self.weights, self.gradient_factor = weights, gradient_factor

    def logits(self, source: Tensor, previous: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return logits (n, V) and the attention (n, m) of each attending block."""
        keys, values = self._encode(source)
        embedded = self._embed("decoder", previous)
        x = self._linear("decoder.in_projection", embedded)
        attentions = []
        for name in self._blocks("decoder"):
            kept = self._residual(name, x)
            x = self._convolve(name, x, before=self._kernel(name) - 1)
            if f"{name}.attention.in_projection.bias" in self.weights:
                query = self._linear(f"{name}.attention.in_projection", x)
                scores = (query + embedded) * HALF @ keys.T
                attention = scores.softmax(1)
                attentions.append(attention)
                # The mean of m values has 1/m of their variance: m * sqrt(1/m).
                context = attention @ values * len(source) ** 0.5
                attended = self._linear(f"{name}.attention.out_projection", context)
                x = (attended + x) * HALF
            x = (x + kept) * HALF
        return self._output(self._linear("decoder.out_projection", x)), attentions

    def _encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        embedded = self._embed("encoder", source)
        x = self._linear("encoder.in_projection", embedded)
        for name in self._blocks("encoder"):
            before = (self._kernel(name) - 1) // 2
            x = (self._convolve(name, x, before) + self._residual(name, x)) * HALF
        z = self._linear("encoder.out_projection", x)
        factor = self.gradient_factor
        z = z * factor + (z * (1.0 - factor)).detach()  # z, with another gradient
        return z, (z + embedded) * HALF

    def _embed(self, side: str, tokens: Tensor) -> Tensor:
        embedded = self.weights[f"{side}.embedding.tokens"][tokens]
        positions = self.weights.get(f"{side}.embedding.positions")
        return embedded if positions is None else embedded + positions[: len(tokens)]

    def _blocks(self, side: str) -> list[str]:
        prefix = f"{side}.blocks."
        count = sum(
            name.startswith(prefix) and name.endswith(".convolution.bias")
            for name in self.weights
        )
        return [f"{prefix}{number}" for number in range(count)]

    def _kernel(self, block: str) -> int:
        return self.weights[f"{block}.convolution.weight_v"].shape[1]

    def _convolve(self, block: str, x: Tensor, before: int) -> Tensor:
        """Convolve (n, d), ``before`` places of each window before its own, and gate."""
        weight, kernel = self._normalized(f"{block}.convolution"), self._kernel(block)
        padded = functional.pad(x, (0, 0, before, kernel - 1 - before))
        places = (padded[k : k + len(x)] @ weight[:, k].T for k in range(kernel))
        convolved = sum(places, start=self.weights[f"{block}.convolution.bias"])
        values, gates = convolved.chunk(2, dim=1)
        return values / (1.0 + (-gates).exp())

    def _residual(self, block: str, x: Tensor) -> Tensor:
        name = f"{block}.residual"
        return self._linear(name, x) if f"{name}.bias" in self.weights else x

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self._normalized(name).T + self.weights[f"{name}.bias"]

    def _output(self, features: Tensor) -> Tensor:
        table = self.weights.get("decoder.output.table")
        if table is None:
            return self._linear("decoder.output", features)
        return features @ table.T + self.weights["decoder.output.bias"]

    def _normalized(self, name: str) -> Tensor:
        """Return g * v / ||v||, one g for each output."""
        v, g = self.weights[f"{name}.weight_v"], self.weights[f"{name}.weight_g"]
        norm = v.flatten(1).square().sum(1).sqrt()
        return v * (g / norm).reshape(-1, *[1] * (v.dim() - 1))


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Return copies of a network's weights that have gradients of their own."""
    return {
        name: parameter.detach().clone().requires_grad_()
        for name, parameter in network.named_parameters()
    }


def negative_log_likelihood(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """Return the loss of (n, V) summed over the target (n,), in nats.

    ``smoothing`` of the probability mass is spread evenly over all types.
    """
    truth = torch.full_like(logits, smoothing / logits.shape[1])
    truth[torch.arange(len(target)), target] += 1.0 - smoothing
    log_probabilities = logits - logits.logsumexp(1, keepdim=True)
    return -(truth * log_probabilities).sum()
