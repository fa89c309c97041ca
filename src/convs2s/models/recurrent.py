"""Recurrent layers that keep the precision of their weights, and batches of packed sentences.

Shapes: B batch, m source length, n target length, c cells of a layer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.backends import mkldnn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, invert_permutation, pack_padded_sequence

from convs2s.data.vocabulary import END, PADDING
from convs2s.models.kernels.linear_map import FEWEST_ROWS, LinearMap
from convs2s.models.network import OutputLayer
from convs2s.models.steps import Precision

State = tuple[Tensor, ...]
"""The state of one layer, each tensor (1, B, c): the output h and, for an LSTM, the cells."""

Read = Callable[[Any, State | None], tuple[Any, State]]
"""The forward pass of a layer: maps an input and the first state to outputs and the last state."""


class LstmLayer(nn.LSTM):
    """One LSTM layer. On a GPU it computes in the precision of its weights, even under autocast."""

    def forward(  # type: ignore[override]
        self, x: Any, state: State | None = None
    ) -> tuple[Any, State]:
        """Read ``x``, padded or packed; return the outputs and the last state.

        ``state`` is the first state; None means zeros. Outputs are in the precision of autocast, if
        it is on.
        """
        read = cast(Read, super().forward)
        return _read(read, cast(Tensor, self.bias_hh_l0), x, state)


class GruLayer(nn.GRU):
    """One layer of gated recurrent units (Cho et al. 2014), in the precision of its weights.

    As in cuDNN, the reset gate multiplies the product of the state and its weight, not the state.
    """

    def forward(  # type: ignore[override]
        self, x: Any, state: State | None = None
    ) -> tuple[Any, State]:
        """Read ``x``, as ``LstmLayer.forward`` does; return the outputs and the last state."""
        forward = super().forward

        def read(x: Any, state: State | None) -> tuple[Any, State]:
            # The state of ``nn.GRU`` is a tensor, not a tuple.
            hidden = None if state is None else state[0]
            y, after = forward(x, hidden)
            return y, (after,)

        return _read(read, cast(Tensor, self.bias_hh_l0), x, state)


def _read(
    read: Read,
    bias: Tensor,
    x: Any,
    state: State | None,
) -> tuple[Any, State]:
    """Read ``x`` in the precision of the layer's parameters; ``bias`` is one of them.

    Under autocast, torch computes recurrent layers on a GPU in float16, even if autocast is set to
    another precision. In float16 small gradients vanish, and the next layers expect autocast's
    precision.
    """
    device_type = bias.device.type
    if device_type == "cpu" or not torch.is_autocast_enabled(device_type):
        return read(x, state)
    x = x.to(bias.dtype)
    if state is not None:
        state = tuple(part.to(bias.dtype) for part in state)
    with torch.autocast(device_type, enabled=False):
        y, after = read(x, state)
    return y.to(torch.get_autocast_dtype(device_type)), after


@contextmanager
def torchs_own_kernels() -> Iterator[None]:
    """Let torch's own kernels compute while the block runs, not those of oneDNN."""
    # ``mkldnn.flags`` would set other flags as well, of which one has torch print a warning.
    before = mkldnn.enabled
    mkldnn.enabled = False  # type: ignore[assignment]
    try:
        yield
    finally:
        mkldnn.enabled = before


def packed(embedded: Tensor, source: Tensor, lengths: Tensor | None) -> PackedSequence:
    """Return the embeddings (B, m, f) of a padded source (B, m) as a packed sequence.

    With a packed sequence, layers stop at the last token of each row, so that padding does not
    change the states. ``lengths`` (B,) on the CPU are the lengths of the rows. If they are not
    given, this function computes them, and has to wait for the device.
    """
    lengths_on_device = (source != PADDING).sum(1)  # (B,)
    if lengths is None:
        lengths = lengths_on_device.cpu()
    # ``pack_padded_sequence`` needs the longest row first. By default it sorts on the CPU, and the
    # device has to wait for the order. So sort the lengths on the device as well, to have the order
    # there.
    order = lengths_on_device.sort(descending=True).indices
    ordered = embedded.index_select(0, order)  # (B, m, f)
    longest_first = lengths.sort(descending=True).values
    batch = pack_padded_sequence(ordered, longest_first, batch_first=True)
    # With the order and its inverse, layers return the states in the order of the source.
    original_order = invert_permutation(order)
    return PackedSequence(batch.data, batch.batch_sizes, order, original_order)


def padded(sequence: PackedSequence, padding: Tensor) -> Tensor:
    """Return a packed sequence as (B, m, c), with zeros at the padding (B, m).

    torch's ``pad_packed_sequence`` also returns the lengths, for which it waits for the device.
    """
    # A packed sequence has the outputs of all rows at position 0, then at position 1, and so on,
    # each time those of the longest row first.
    # The number of rows that reach each position, on the CPU. These are fewer than m numbers if the
    # longest row is shorter than m.
    sizes = sequence.batch_sizes
    # The place in the sequence where the outputs of each position start.
    starts = torch.zeros(padding.shape[1], dtype=torch.int64)  # (m,)
    starts[1 : len(sizes)] = sizes.cumsum(0)[:-1]
    starts = starts.to(padding.device, non_blocking=True)
    # The rank of each row in the order by length.
    ranks = cast(Tensor, sequence.unsorted_indices)  # (B,)
    places = starts + ranks.unsqueeze(1)  # (B, m)
    # At padding, the places belong to other rows or do not exist. Read place 0 there; the line
    # below sets what is read to zero.
    values = sequence.data[places.masked_fill(padding, 0)]  # (B, m, c)
    return values.masked_fill(padding.unsqueeze(2), 0.0)


def with_longer_rows(source: Tensor) -> Tensor:
    """Return padded source indices (B, m) with ``FEWEST_ROWS`` more rows, longer than all others.

    The encoding of a sentence must not depend on the other sentences of its batch. But torch uses
    another kernel if all rows have the same length, and adds terms in another order at positions
    that fewer than ``FEWEST_ROWS`` rows reach. The result is (B + FEWEST_ROWS, m + 1).
    """
    source = functional.pad(source, (0, 1), value=PADDING)  # (B, m + 1)
    longer = source.new_full((FEWEST_ROWS, source.shape[1]), END)
    return torch.cat([source, longer])


class RecurrentInference:
    """The output layer and the precision of a recurrent network for decoding.

    The other layers are those of the network itself, not copies. In bf16, they run under autocast.
    A CPU then rounds their weights at each step, and a GPU does not (see ``_read``).
    """

    def __init__(self, output: OutputLayer, precision: Precision) -> None:
        """Take the output layer; fp32 keeps the precision of its weights."""
        self.output = LinearMap(output.weight(), output.bias, precision)
        self.autocast = torch.autocast(
            output.bias.device.type, torch.bfloat16, enabled=precision == "bf16"
        )
