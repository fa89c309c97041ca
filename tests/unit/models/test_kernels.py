"""Linear maps in every precision, and the largest of many numbers."""

import pytest
import torch
from torch.nn import functional

from convs2s.models.kernels import quantized_linear
from convs2s.models.kernels.logits import topk_of_sums
from convs2s.models.kernels.linear_map import linear_map
from convs2s.models.steps import Precision
from tests.support.kernels import INT8, precision_of


@pytest.fixture
def precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Precision:
    """A precision by a kernel of its own."""
    return precision_of(request.param, monkeypatch)


every_precision = pytest.mark.parametrize("precision", ["fp32", "bf16", *INT8], indirect=True)
every_int8 = pytest.mark.parametrize("precision", INT8, indirect=True)
TOLERANCE = {"fp32": 1e-6, "bf16": 0.02, "int8": 0.02}


@pytest.mark.parametrize("shape", [(7, 24, 40), (64, 256, 512), (1, 3, 2)])
@every_precision
def test_maps_are_near(precision: Precision, shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    rows, inputs, outputs = shape
    x, weight, bias = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
    x *= torch.logspace(-2, 2, rows).unsqueeze(1)  # rows of all sizes
    weight *= torch.logspace(-1, 1, outputs).unsqueeze(1)  # and outputs
    given = x.bfloat16() if precision == "bf16" else x
    found = linear_map(weight, bias, precision)(given).float()
    # What rounding may do: a share of the product of the norms.
    norms = x.norm(dim=1, keepdim=True) * weight.norm(dim=1) + bias.abs()
    error = (found - functional.linear(x, weight, bias)).abs() / norms
    assert float(error.max()) < TOLERANCE[precision]


@pytest.mark.parametrize("precision", INT8[:1], indirect=True)
def test_int8_sums_exactly(precision: Precision) -> None:
    """Rows and weights of integers whose largest is 127 have nothing to round."""
    torch.manual_seed(1)
    x, weight = (torch.randint(-127, 128, size).float() for size in ((5, 4096), (9, 4096)))
    x[:, 0], weight[:, 0] = 127.0, -127.0
    exact = functional.linear(x.double(), weight.double())
    found = linear_map(weight, torch.zeros(9), precision)(x)
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=8.0)


@pytest.mark.parametrize("precision", INT8[:1], indirect=True)
def test_int8_rounds_to_the_nearest(precision: Precision) -> None:
    x = torch.tensor([[127.0, 0.6, -0.6]])  # one unit is 1
    weight = torch.tensor([[0.0, 127.0, 0.0], [0.0, 0.0, 127.0]])
    found = linear_map(weight, torch.zeros(2), precision)(x)
    torch.testing.assert_close(found, torch.tensor([[127.0, -127.0]]))


@every_int8
def test_int8_of_zeros_is_the_bias(precision: Precision) -> None:
    bias = torch.arange(3.0)
    found = linear_map(torch.zeros(3, 8), bias, precision)(torch.zeros(2, 4, 8))
    assert torch.equal(found, bias.expand(2, 4, 3))


@every_precision
def test_some_outputs_are_those_of_all(precision: Precision) -> None:
    torch.manual_seed(1)
    x, whole = torch.randn(3, 16), linear_map(torch.randn(20, 16), torch.randn(20), precision)
    x = x.bfloat16() if precision == "bf16" else x
    outputs = torch.tensor([0, 3, 19])
    found = whole.of(outputs)(x)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.to(whole(x).dtype), whole(x)[:, outputs])


@every_int8
@pytest.mark.parametrize("shape", [(50, 96), (256, 768), (1400, 768)])
def test_a_row_of_integers_follows_from_itself_alone(
    precision: Precision, shape: tuple[int, int]
) -> None:
    assert_rows_are_independent(precision, shape)


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize("shape", [(50, 96), (256, 768), (1400, 768)])  # the last one is packed
def test_a_row_in_fp32_follows_from_itself_alone(
    shape: tuple[int, int], packs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantized_linear, "packs_fp32", lambda: packs)
    assert_rows_are_independent("fp32", shape)


# Longer sums oneDNN splits by the number of rows where a processor has bf16 matrix units (AMX).
@pytest.mark.parametrize("shape", [(50, 96), (1400, 256)])
def test_a_row_in_bf16_follows_from_itself_alone(shape: tuple[int, int]) -> None:
    assert_rows_are_independent("bf16", shape)


def assert_rows_are_independent(precision: Precision, shape: tuple[int, int]) -> None:
    torch.manual_seed(1)
    x = torch.randn(40, shape[1]) * torch.logspace(-3, 3, 40).unsqueeze(1)
    x = x.bfloat16() if precision == "bf16" else x
    multiply = linear_map(torch.randn(shape), torch.randn(shape[0]), precision)
    together = multiply(x)
    for rows in (*(slice(3, 3 + count) for count in range(1, 6)), slice(7, 20), slice(39, 40)):
        assert torch.equal(multiply(x[rows]), together[rows])


@pytest.mark.parametrize("precision", INT8[1:], indirect=True)
def test_sums_of_bytes_do_not_overflow(precision: Precision) -> None:
    """Where they are added up in 16 bits, two products of 8 by 8 bits are too many."""
    x, weight = torch.ones(2, 4096), torch.ones(3, 4096)
    x[1], weight[1] = -1.0, -1.0
    found = linear_map(weight, torch.zeros(3), precision)(x)
    torch.testing.assert_close(found, functional.linear(x, weight), rtol=0.01, atol=0)


@pytest.mark.parametrize("total", [5, 40, 1024, 4097])
@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_largest_are_topks(total: int, count: int, rows: int) -> None:
    torch.manual_seed(1)
    numbers, offsets = torch.randn(3, rows, total), torch.randn(3, rows)
    numbers[0, 0, total // 2] = -torch.inf
    numbers[1, 0, -1] = 9.0  # behind the last whole group
    offsets[2, 1:] = -torch.inf
    values, places = topk_of_sums(numbers, offsets, count)
    expected = (numbers + offsets.unsqueeze(2)).flatten(1).topk(count)
    assert torch.equal(values, expected.values)
    assert torch.equal(places, expected.indices)
