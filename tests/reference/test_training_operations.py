"""What training computes in fewer passes than torch equals what torch computes."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from convs2s.models.kernels import logits as kernel
from convs2s.models.kernels.dropout import dropout
from convs2s.models.kernels.logits import summed_cross_entropy
from convs2s.models.kernels.matmul import linear


def assert_same(
    ours: Callable[..., Tensor], theirs: Callable[..., Tensor], *inputs: Tensor
) -> None:
    """Compare two functions of tensors, and their gradients."""
    for each in inputs:
        each.requires_grad_()
    outputs = ours(*inputs), theirs(*inputs)
    assert_close(*outputs)
    factors = torch.randn_like(outputs[0])
    gradients = (torch.autograd.grad(output, inputs, factors) for output in outputs)
    assert_close(*gradients)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("shape", [(3, 4, 5), (16, 2, 5), (7, 5), (32, 5)])
def test_products(shape: tuple[int, ...]) -> None:
    inputs = torch.randn(shape), torch.randn(6, 5), torch.randn(6)
    assert_same(linear, functional.linear, *inputs)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("block", [1, 60, 1 << 21])
def test_loss(monkeypatch: pytest.MonkeyPatch, smoothing: float, block: int) -> None:
    monkeypatch.setattr(kernel, "BLOCK", block)
    monkeypatch.setattr(kernel, "LEAST_ROWS", 1)
    target = torch.randint(13, (11,))

    def ours(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return summed_cross_entropy(features, weight, bias, target, smoothing)

    def theirs(*inputs: Tensor) -> Tensor:
        logits = functional.linear(*inputs)
        return functional.cross_entropy(
            logits, target, reduction="sum", label_smoothing=smoothing
        )

    inputs = [torch.randn(shape).double() for shape in ((11, 5), (13, 5), (13,))]
    assert_same(ours, theirs, *inputs)
    with torch.no_grad():  # as a validation
        assert_close(ours(*inputs), theirs(*inputs))


def test_dropout() -> None:
    x = torch.ones(1000, 7, 143, requires_grad=True)
    padding = torch.zeros(1000, 7).bool()
    padding[2, 3] = True

    def masked(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return dropout(x, 0.2, True, padding)

    dropped, again, other = map(masked, (1, 1, 2))
    assert torch.equal(dropped, again)
    assert not torch.equal(dropped, other)
    assert not dropped[padding].any()
    assert (dropped > 0).float().mean().item() == pytest.approx(0.8, abs=0.002)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.002)
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    assert_close(gradient, dropped)  # x is 1
