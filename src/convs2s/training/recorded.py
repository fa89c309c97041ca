"""Compute the gradients of micro-batches by CUDA graphs, one for each shape that comes again.

For a micro-batch of a few thousand tokens, the CPU needs longer to launch the operations one by one
than the GPU needs to compute them. A CUDA graph launches all of them at once, on the same memory
and with the same shapes (``convs2s.models.recorded_ensemble``). Therefore:

- Rows and lengths are padded to a few sizes. The loss ignores this padding.
- The first micro-batch of a shape is not recorded, because libraries allocate their workspaces and
  torch.compile compiles while it runs. The second one is recorded. It and the later ones then
  replay this recording.
- The gradients are added to memory that stays the same (``Gradients``). Their sum over the workers,
  clipping, and the optimizer's step are not recorded.
- Before a replay, torch writes the seed to where the recorded dropout reads it. So the masks do not
  depend on what was recorded, and a resumed training has the same masks.

Shapes: B pairs, m source length, n target length.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from convs2s.data.batches import Batch, Indices
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.recorded_ensemble import Recording
from convs2s.training.loading import LossInputs

RECORDS_NOTHING = "CONVS2S_UNRECORDED"
"""Environment variable: if it is set, a training records nothing, and is slower on a GPU."""

MOST_SHAPES = 64
"""Maximum number of known shapes; the one that was not used for the longest time is forgotten.

With batches of 256 pairs of news, 45 shapes cover 95% of the shares of eight workers, and 88 shapes
cover 99%. For a single worker they are 32 and 60.
"""

AddGradient = Callable[[LossInputs, int | Tensor], Tensor]
"""Adds the gradient of a loss / divisor to the parameters' gradients; returns the loss."""


def fill_up(batch: Batch) -> Batch:
    """Return a batch with empty sentences added as its last rows, at most a quarter more rows.

    From 2^k rows on, the new number of rows is a multiple of 2^(k - 2). An empty sentence is
    ``</s>`` followed by padding, and its target is padding alone.
    """
    rows = len(batch.source)
    step = 1 << max(0, rows.bit_length() - 3)
    added = -rows % step  # from ``rows`` to the next multiple of ``step``

    def filled(tokens: Indices, first_token: int) -> Indices:
        longer = np.pad(tokens, ((0, added), (0, 0)), constant_values=PADDING)
        longer[rows:, 0] = first_token
        return longer

    return Batch(
        filled(batch.source, END),
        filled(batch.previous, END),
        filled(batch.target, PADDING),
    )


@dataclass(frozen=True)
class _Recorded:
    """A recording, with the memory that it reads and writes."""

    inputs: LossInputs
    divisor: Tensor  # a scalar
    loss: Tensor  # a scalar
    recording: Recording


class RecordedGradient:
    """Adds gradients of micro-batches, by a recording if their shape has come before."""

    def __init__(self, device: str, recording: Callable[[], Recording]) -> None:
        """Start without recordings; ``recording`` makes an empty one.

        All recordings may share their memory.
        """
        self._device = device
        self._new_recording = recording
        # Shape -> its recording, or None if the shape has come only once. The shapes are in the
        # order of their last use, oldest first.
        self._known: dict[tuple[int, ...], _Recorded | None] = {}

    def replays(self, inputs: LossInputs) -> bool:
        """Return whether ``add`` will replay a recording."""
        return _shape(inputs) in self._known

    def add(
        self, add_gradient: AddGradient, inputs: LossInputs, divisor: int
    ) -> Tensor:
        """Add the gradient of a loss, divided by ``divisor``; return the loss, not divided.

        ``add_gradient`` does the work, and must be the same in each call. The next call overwrites
        the loss.
        """
        shape = _shape(inputs)
        if shape not in self._known:
            if len(self._known) == MOST_SHAPES:
                oldest = next(iter(self._known))
                del self._known[oldest]
            self._known[shape] = None
            return add_gradient(inputs, divisor)
        recorded = self._known.pop(shape)  # put back below, as the last one
        if recorded is None:
            # Every replay reads its inputs and divisor from the memory of these tensors.
            static_inputs = inputs.to(self._device)
            static_divisor = torch.full((), divisor, device=self._device)
            recording = self._new_recording()
            try:
                loss = recording.record(
                    partial(add_gradient, static_inputs, static_divisor)
                )
            except RuntimeError as error:
                # The message comes from CUDA, and does not say what the user can do.
                error.add_note(
                    "The gradient of a micro-batch could not be recorded. With "
                    f"{RECORDS_NOTHING}=1 in the environment, a training records nothing."
                )
                raise
            recorded = _Recorded(static_inputs, static_divisor, loss, recording)
        self._known[shape] = recorded
        recorded.inputs.read(inputs)
        recorded.divisor.fill_(divisor)
        recorded.recording.replay()
        return recorded.loss

    def clear(self) -> None:
        """Forget all recordings, and free their memory."""
        self._known.clear()


def _shape(inputs: LossInputs) -> tuple[int, ...]:
    """Return (B, m, n)."""
    return (*inputs.source.shape, inputs.previous.shape[1])
