"""What training computes in fewer passes than torch equals what torch computes."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.kernels import logits as kernel
from convs2s.models.kernels.dropout import dropout
from convs2s.models.kernels.logits import summed_cross_entropy
from convs2s.models.kernels.matmul import linear, windows


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("shape", [(3, 4, 5), (16, 2, 5), (7, 5), (32, 5)])
def test_a_product_by_every_kernel_is_the_product(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    inputs = [torch.randn(one, requires_grad=True) for one in (shape, (6, 5), (6,))]
    ours, theirs = linear(*inputs), functional.linear(*inputs)
    torch.testing.assert_close(ours, theirs)
    factors = torch.randn_like(theirs)
    mine = gradients((ours * factors).sum(), *inputs)
    for one, other in zip(
        mine, gradients((theirs * factors).sum(), *inputs), strict=True
    ):
        torch.testing.assert_close(one, other)


def gradients(loss: Tensor, *inputs: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, inputs))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("block", [1, 60, 1 << 21])
def test_the_loss_equals_torchs(
    monkeypatch: pytest.MonkeyPatch, smoothing: float, block: int
) -> None:
    monkeypatch.setattr(kernel, "BLOCK", block)
    monkeypatch.setattr(kernel, "LEAST_ROWS", 1)
    torch.manual_seed(1)
    inputs = [
        torch.randn(shape, dtype=torch.float64) for shape in ((11, 5), (13, 5), (13,))
    ]
    features, weight, bias = (one.requires_grad_() for one in inputs)
    target = torch.randint(13, (11,))
    ours = summed_cross_entropy(features, weight, bias, target, smoothing)
    logits = functional.linear(features, weight, bias)
    theirs = functional.cross_entropy(
        logits, target, reduction="sum", label_smoothing=smoothing
    )
    torch.testing.assert_close(ours, theirs)
    for mine, other in zip(
        gradients(3 * ours, *inputs), gradients(3 * theirs, *inputs), strict=True
    ):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_in_bf16_is_near_that_in_fp32(smoothing: float) -> None:
    torch.manual_seed(1)
    inputs = [torch.randn(shape) for shape in ((200, 32), (500, 32), (500,))]
    features, weight, bias = (one.requires_grad_() for one in inputs)
    target = torch.randint(500, (200,))
    exact = summed_cross_entropy(features, weight, bias, target, smoothing)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = summed_cross_entropy(features, weight, bias, target, smoothing)
    assert rounded.item() == pytest.approx(exact.item(), rel=1e-3)
    for mine, other in zip(
        gradients(rounded, *inputs), gradients(exact, *inputs), strict=True
    ):
        assert mine.dtype == torch.float32
        assert (mine - other).norm() < 0.02 * other.norm()


def test_the_loss_of_a_validation_keeps_no_gradients() -> None:
    weight = torch.nn.Parameter(torch.randn(7, 3))
    with torch.no_grad():
        loss = summed_cross_entropy(
            torch.randn(4, 3), weight, torch.zeros(7), torch.zeros(4, dtype=torch.int64)
        )
    assert not loss.requires_grad


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("positions", [1, 2, 6])
@pytest.mark.parametrize("causal", [True, False])
def test_windows_equal_padding_and_slices(
    kernel: int, positions: int, causal: bool
) -> None:
    left = kernel - 1 if causal else (kernel - 1) // 2
    x = torch.randn(2, positions, 3, dtype=torch.float64, requires_grad=True)
    padded = functional.pad(x, (0, 0, left, kernel - 1 - left))
    expected = torch.cat([padded[:, i : i + positions] for i in range(kernel)], 2)
    ours = windows(x, kernel, left)
    torch.testing.assert_close(ours, expected)
    factors = torch.randn_like(expected)
    (mine,) = gradients((ours * factors).sum(), x)
    (other,) = gradients((expected * factors).sum(), x)
    torch.testing.assert_close(mine, other)


def test_dropout_keeps_the_mean_and_scales_the_gradient() -> None:
    torch.manual_seed(1)
    x = torch.ones(1000, 1001, requires_grad=True)
    dropped = dropout(x, 0.2, training=True)
    kept = dropped > 0
    assert kept.float().mean().item() == pytest.approx(0.8, abs=0.002)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.002)
    (gradient,) = gradients(dropped.sum(), x)
    torch.testing.assert_close(gradient, dropped)  # x is 1


@pytest.mark.parametrize("training", [True, False])
def test_dropout_zeroes_all_padding(training: bool) -> None:
    padding = torch.tensor([[False, False], [False, True]])
    dropped = dropout(torch.ones(2, 2, 100), 0.2, training, padding)
    assert not dropped[1, 1].any()
    assert all(dropped[row, column].any() for row, column in ((0, 0), (0, 1), (1, 0)))


def test_dropout_follows_torchs_seed() -> None:
    x = torch.ones(64, 3)
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(dropout(x, 0.5, training=True))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_dropout_does_nothing_in_evaluation_or_at_zero() -> None:
    x = torch.ones(4)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x
