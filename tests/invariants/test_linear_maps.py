"""The linear maps of decoding: near torch's in every precision, and each row from itself alone."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.onnx_builder import FLOATS, Graph
from convs2s.models.steps import Precision

TOLERANCE = {"fp32": 1e-6, "bf16": 0.02, "int8": 0.02}
Make = Callable[[Tensor, Tensor, Precision], Callable[[Tensor], Tensor]]


def onnx_map(
    weight: Tensor, bias: Tensor, precision: Precision, scale: float | None = None
) -> Callable[[Tensor], Tensor]:
    graph = Graph(precision)
    x = graph.input("x", FLOATS, ["rows", weight.shape[1]])
    if scale is not None:
        x = graph.quantize(x, scale)
    graph.output("y", graph.linear(x, weight.numpy(), bias.numpy(), scale))
    session = graph.session()
    return lambda rows: torch.from_numpy(session.run(["y"], {"x": rows.numpy()})[0])


# Longer sums in bf16 are split by the number of rows where a processor has matrix units (AMX).
@pytest.mark.parametrize("shape", [(40, 24), (2, 3), (50, 96), (1400, 256), (256, 768)])
@pytest.mark.parametrize(
    ("make", "precision"),
    [(LinearMap, "fp32"), (LinearMap, "bf16"), (onnx_map, "fp32"), (onnx_map, "int8")],
)
def test_maps_are_near_torchs_row_by_row(
    make: Make, precision: Precision, shape: tuple[int, int]
) -> None:
    torch.manual_seed(1)
    outputs, inputs = shape
    x = torch.randn(40, inputs) * torch.logspace(-3, 3, 40).unsqueeze(1)
    weight = torch.randn(shape) * torch.logspace(-1, 1, outputs).unsqueeze(1)
    bias = torch.randn(outputs)
    multiply = make(weight, bias, precision)
    together = multiply(x)
    # What rounding may do: a share of the product of the norms.
    norms = x.norm(dim=1, keepdim=True) * weight.norm(dim=1) + bias.abs()
    error = (together.float() - functional.linear(x, weight, bias)).abs() / norms
    assert float(error.max()) < TOLERANCE[precision]
    for last in (4, 5, 6, 7, 8, 20, 40):
        assert torch.equal(multiply(x[3:last]), together[3:last])


@pytest.mark.parametrize(
    ("x", "weight", "expected"),
    [
        # Rounded to the nearest: one unit of the inputs is 1.
        ([127.0, 0.6, -0.6], [[0.0, 127.0, 0.0], [0.0, 0.0, 127.0]], [127.0, -127.0]),
        # The bias alone.
        ([0.0] * 8, [[0.0] * 8], [0.0]),
        # Where they are added up in 16 bits, two products of 8 by 8 bits are too many.
        ([1.0] * 4096, [[1.0] * 4096, [-1.0] * 4096], [4096.0, -4096.0]),
    ],
)
def test_int8(x: list[float], weight: list[list[float]], expected: list[float]) -> None:
    bias = torch.arange(len(weight)) + 5.0
    found = onnx_map(torch.tensor(weight), bias, "int8")(torch.tensor([x]))
    torch.testing.assert_close(found, torch.tensor([expected]) + bias)


def test_a_fixed_scale_rounds_all_rows_alike_and_cuts_off() -> None:
    """One unit is 0.5, so that the largest value is 63.5."""
    weight = torch.tensor([[127.0, 0.0, 0.0], [0.0, -254.0, 254.0]])
    bias = torch.tensor([1.0, -1.0])
    multiply = onnx_map(weight, bias, "int8", 0.5)
    x = torch.tensor([[1.0, 0.3, 0.2], [100.0, 63.5, -70.0], [0.0, 0.0, -64.0]])
    # A byte has room for one more unit below zero than above it.
    rounded = torch.tensor([[1.0, 0.5, 0.0], [63.5, 63.5, -64.0], [0.0, 0.0, -64.0]])
    torch.testing.assert_close(multiply(x), functional.linear(rounded, weight, bias))
    torch.manual_seed(1)
    x = 20 * torch.randn(40, 3)
    for last in (4, 5, 8, 20, 40):
        assert torch.equal(multiply(x[3:last]), multiply(x)[3:last])
