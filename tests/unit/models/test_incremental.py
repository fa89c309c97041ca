"""What decoding keeps between steps, and the copy of the network that it runs."""

import pytest
import torch

from convs2s.models.convs2s import ConvS2S
from convs2s.models.incremental import DecodingConvS2S
from convs2s.models.windows import Windows
from tests.support.networks import TYPES, batch, convs2s


def test_windows_move_together_and_change_their_rows() -> None:
    windows = Windows([(3, 1), (1, 1), (2, 2)], 2, torch.empty(0))

    def write(number: float, *order: int) -> list[list[list[float]]]:
        """Go on from some rows with an input of one sentence; what each block reads then."""
        windows.begin(torch.tensor(order))
        rows = len(order)
        x = torch.tensor([number, number + 0.5])[:rows].view(1, rows, 1)
        found = [
            windows.add(block, x.expand(-1, -1, width))
            for block, width in enumerate((1, 1, 2))
        ]
        windows.end()
        return [window[0].tolist() for window in found]

    write(1.0, 0, 1)
    assert write(2.0, 0, 1)[0] == [[0.0, 1.0, 2.0], [0.0, 1.5, 2.5]]
    assert write(3.0, 1, 1) == [
        [[1.5, 2.5, 3.0], [1.5, 2.5, 3.5]],
        [[3.0], [3.5]],
        [[2.5, 2.5, 3.0, 3.0], [2.5, 2.5, 3.5, 3.5]],
    ]
    assert write(4.0, 1) == [[[2.5, 3.5, 4.0]], [[4.0]], [[3.5, 3.5, 4.0, 4.0]]]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_network_that_decodes_stays_as_it_is(precision: str) -> None:
    architecture = convs2s(
        ((8, 3),),
        ((8, 3), (8, 1)),
        embedding=10,
        attention=[1, 2],
        attention_weights="shared",
    )
    trained = ConvS2S(architecture, TYPES, TYPES).train()
    before = {name: tensor.clone() for name, tensor in trained.state_dict().items()}
    decoding = DecodingConvS2S(trained, precision)  # type: ignore[arg-type]
    with torch.inference_mode():
        features, _ = decoding.start(batch(3, 5), 2).step(torch.full((2, 2), 2))
    assert features.dtype == (torch.bfloat16 if precision == "bf16" else torch.float32)
    assert trained.training
    assert all(
        torch.equal(before[name], one) for name, one in trained.state_dict().items()
    )
    # Blocks that share their attention share it in the copy as well.
    attentions = {id(block.attention) for block in decoding.network.decoder.blocks}
    assert len(attentions) == 1
    assert all(
        parameter.dtype == decoding.dtype for parameter in decoding.network.parameters()
    )
