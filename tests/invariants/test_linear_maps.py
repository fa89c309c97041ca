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
    ("scale", "x", "rounded"),
    [
        # By a scale of the row: the largest value is 127 units of 1.
        (None, [127.0, 0.6, -0.6], [127.0, 1.0, -1.0]),
        # By a fixed scale: the largest value is 63.5, and below zero there is one more unit.
        (0.5, [1.0, 0.3, 0.2], [1.0, 0.5, 0.0]),
        (0.5, [100.0, 63.5, -70.0], [63.5, 63.5, -64.0]),
    ],
)
def test_int8_rounds_to_units(
    scale: float | None, x: list[float], rounded: list[float]
) -> None:
    weight = torch.tensor([[127.0, 0.0, 0.0], [0.0, -254.0, 254.0]])
    bias = torch.tensor([1.0, -1.0])
    found = onnx_map(weight, bias, "int8", scale)(torch.tensor([x]))
    expected = functional.linear(torch.tensor([rounded]), weight, bias)
    torch.testing.assert_close(found, expected)


def test_int8_adds_up_in_more_than_16_bits() -> None:
    ones = torch.ones(1, 4096)
    found = onnx_map(torch.cat([ones, -ones]), torch.zeros(2), "int8")(ones)
    torch.testing.assert_close(found, torch.tensor([[4096.0, -4096.0]]))
