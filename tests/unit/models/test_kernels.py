"""Linear maps in every precision, by torch and by ONNX Runtime."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.steps import Precision
from tests.support.kernels import onnx_map

Make = Callable[[Tensor, Tensor, Precision], Callable[[Tensor], Tensor]]
MAPS: list[tuple[Make, Precision]] = [
    (LinearMap, "fp32"),
    (LinearMap, "bf16"),
    (onnx_map, "fp32"),
    (onnx_map, "int8"),
]
every_map = pytest.mark.parametrize(("make", "precision"), MAPS)
TOLERANCE = {"fp32": 1e-6, "bf16": 0.02, "int8": 0.02}


@pytest.mark.parametrize("shape", [(7, 24, 40), (64, 256, 512), (1, 3, 2)])
@every_map
def test_maps_are_near(
    make: Make, precision: Precision, shape: tuple[int, ...]
) -> None:
    torch.manual_seed(1)
    rows, inputs, outputs = shape
    x, weight, bias = (
        torch.randn(rows, inputs),
        torch.randn(outputs, inputs),
        torch.randn(outputs),
    )
    x *= torch.logspace(-2, 2, rows).unsqueeze(1)  # rows of all sizes
    weight *= torch.logspace(-1, 1, outputs).unsqueeze(1)  # and outputs
    given = x.bfloat16() if precision == "bf16" else x
    found = make(weight, bias, precision)(given).float()
    # What rounding may do: a share of the product of the norms.
    norms = x.norm(dim=1, keepdim=True) * weight.norm(dim=1) + bias.abs()
    error = (found - functional.linear(x, weight, bias)).abs() / norms
    assert float(error.max()) < TOLERANCE[precision]


def test_int8_sums_exactly() -> None:
    """Rows and weights of integers whose largest is 127 have nothing to round."""
    torch.manual_seed(1)
    x, weight = (
        torch.randint(-127, 128, size).float() for size in ((5, 4096), (9, 4096))
    )
    x[:, 0], weight[:, 0] = 127.0, -127.0
    exact = functional.linear(x.double(), weight.double())
    found = onnx_map(weight, torch.zeros(9), "int8")(x)
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=8.0)


def test_int8_rounds_to_the_nearest() -> None:
    x = torch.tensor([[127.0, 0.6, -0.6]])  # one unit is 1
    weight = torch.tensor([[0.0, 127.0, 0.0], [0.0, 0.0, 127.0]])
    found = onnx_map(weight, torch.zeros(2), "int8")(x)
    torch.testing.assert_close(found, torch.tensor([[127.0, -127.0]]))


def test_int8_of_zeros_is_the_bias() -> None:
    bias = torch.arange(3.0)
    found = onnx_map(torch.zeros(3, 8), bias, "int8")(torch.zeros(2, 8))
    assert torch.equal(found, bias.expand(2, 3))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_some_outputs_are_those_of_all(precision: Precision) -> None:
    torch.manual_seed(1)
    x, whole = (
        torch.randn(3, 16),
        LinearMap(torch.randn(20, 16), torch.randn(20), precision),
    )
    x = x.bfloat16() if precision == "bf16" else x
    outputs = torch.tensor([0, 3, 19])
    found = whole.of(outputs)(x)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.to(whole(x).dtype), whole(x)[:, outputs])


# Longer sums in bf16 are split by the number of rows where a processor has matrix units (AMX).
@pytest.mark.parametrize("shape", [(50, 96), (1400, 256), (256, 768)])
@every_map
def test_a_row_follows_from_itself_alone(
    make: Make, precision: Precision, shape: tuple[int, int]
) -> None:
    torch.manual_seed(1)
    x = torch.randn(40, shape[1]) * torch.logspace(-3, 3, 40).unsqueeze(1)
    x = x.bfloat16() if precision == "bf16" else x
    multiply = make(torch.randn(shape), torch.randn(shape[0]), precision)
    together = multiply(x)
    for rows in (
        *(slice(3, 3 + count) for count in range(1, 6)),
        slice(7, 20),
        slice(39, 40),
    ):
        assert torch.equal(multiply(x[rows]), together[rows])


def test_sums_of_bytes_do_not_overflow() -> None:
    """Where they are added up in 16 bits, two products of 8 by 8 bits are too many."""
    x, weight = torch.ones(2, 4096), torch.ones(3, 4096)
    x[1], weight[1] = -1.0, -1.0
    found = onnx_map(weight, torch.zeros(3), "int8")(x)
    torch.testing.assert_close(found, functional.linear(x, weight), rtol=0.01, atol=0)
