"""Attention whose maps are applied to the source, and windows that move together."""

import pytest
import torch

from convs2s.models.convs2s import Attention, EncodedSource
from convs2s.models.convs2s_inference import AttendedSource, ConvolutionInputs, InferenceAttention
from convs2s.models.layers import SQRT_HALF

WIDE, NARROW = 9, 5


@pytest.mark.parametrize("width", [NARROW, 7, WIDE])
def test_the_context_is_that_of_the_paper(width: int) -> None:
    torch.manual_seed(1)
    attention = Attention(width, 7).double()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    keys, values = torch.randn(2, 2, 4, 7, dtype=torch.float64)  # (B, m, f)
    hidden = torch.randn(2, 3, width, dtype=torch.float64)  # (B, K, d)
    embedded = torch.randn(2, 3, 7, dtype=torch.float64)
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    encoded = EncodedSource(keys, values, padding, torch.ones(2, 1, 1, dtype=torch.float64))
    expected = attention(hidden, embedded, encoded)

    inference = InferenceAttention(attention, "fp32")
    bias = torch.zeros(2, 1, 4, dtype=torch.float64).masked_fill_(padding.unsqueeze(1), -torch.inf)
    common = torch.bmm(embedded, keys.transpose(1, 2)) * SQRT_HALF
    source = inference.project(keys, values, bias)
    half, found = inference(hidden.flatten(0, 1), common, source)
    torch.testing.assert_close(half.view_as(hidden), expected[0] * SQRT_HALF)
    torch.testing.assert_close(found, expected[1])
    # A narrow block has no map left to apply at each step.
    assert source.keys.shape[2] == source.values.shape[2] == min(width, 7)
    # What is left of a batch is laid out as the batch was, so that products add up alike.
    kept = AttendedSource(keys, [source]).keep(torch.tensor([1]))
    for part, whole in ((kept.keys, keys), (kept.blocks[0].keys, source.keys)):
        assert torch.equal(part[0], whole[1])
        assert part.stride() == whole.stride()


def test_windows_move_together_and_change_their_rows() -> None:
    inputs = ConvolutionInputs([(3, 1), (1, 1), (2, 2)], 2, torch.empty(0))

    def write(number: float) -> None:
        for newest in inputs.newest:
            newest.copy_(torch.tensor([[number], [number + 0.5]]).expand(-1, newest.shape[1]))

    write(1.0)
    inputs.shift(None)
    write(2.0)
    assert inputs.windows[0].tolist() == [[0.0, 1.0, 2.0], [0.0, 1.5, 2.5]]
    inputs.shift(torch.tensor([1, 1]))
    write(3.0)
    assert inputs.windows[0].tolist() == [[1.5, 2.5, 3.0], [1.5, 2.5, 3.5]]
    assert inputs.windows[1].tolist() == [[3.0], [3.5]]
    assert inputs.windows[2].tolist() == [[2.5, 2.5, 3.0, 3.0], [2.5, 2.5, 3.5, 3.5]]
    inputs.shift(torch.tensor([1]))
    assert [window.shape for window in inputs.windows] == [(1, 3), (1, 1), (1, 4)]
    assert inputs.windows[0][:, :2].tolist() == [[2.5, 3.5]]
