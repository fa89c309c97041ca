"""Replay the gradients of micro-batches whose shapes come again, each as one CUDA graph.

For a micro-batch of a few thousand tokens, the CPU needs longer to launch the operations one by one
than the GPU needs to compute them. A CUDA graph launches all of them at once, on the same memory
and with the same shapes (``convs2s.models.recorded_ensemble``). Therefore:

- Rows and lengths are filled up to a few sizes. What fills them counts for nothing.
- The first micro-batch of a shape runs without being recorded: libraries allocate their workspaces,
  and torch.compile compiles. The second one is recorded.
- The gradients are added to memory that stays the same (``Gradients``). Their sum over the workers,
  clipping, and the optimizer's step are not recorded.
- Before a replay, torch writes the seed to where the recorded dropout reads it. So masks do not
  depend on what was recorded, and a resumed training has the same ones.

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
"""Maximum number of shapes that are known; the one that has not come for the longest is forgotten.

Of shares of 256 pairs for eight workers, with the lengths of news, 45 shapes cover 95% and 88 cover
99%; of whole batches, 32 and 60.
"""

AddGradient = Callable[[LossInputs, int | Tensor], Tensor]
"""Adds the gradient of a loss, divided by a number, to the parameters'; returns the loss."""


def fill_up(batch: Batch) -> Batch:
    """Return a batch with empty sentences, at most a quarter more, as its last rows.

    Of 2^k rows or more, their number is a multiple of 2^(k - 2). An empty sentence is ``</s>``
    followed by padding, and its target is padding alone.
    """
    rows = len(batch.source)
    step = max(1, 1 << (rows.bit_length() - 3)) if rows > 3 else 1
    missing = ((0, -rows % step), (0, 0))

    def filled(tokens: Indices, first: int) -> Indices:
        more = np.pad(tokens, missing, constant_values=PADDING)
        more[rows:, 0] = first
        return more

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
    """Adds gradients of micro-batches, by a recording if there is one of their shape."""

    def __init__(self, device: str, recording: Callable[[], Recording]) -> None:
        """Take ``recording``, which makes an empty recording.

        All recordings may share their memory.
        """
        self._device = device
        self._recording = recording
        # The recording of each shape, None if it has come once; the last one has come last.
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
            while len(self._known) >= MOST_SHAPES:
                del self._known[next(iter(self._known))]
            self._known[shape] = None
            return add_gradient(inputs, divisor)
        recorded = self._known.pop(shape)
        if recorded is None:
            kept = inputs.to(self._device)
            dividing = torch.full((), divisor, device=self._device)
            recording = self._recording()
            try:
                loss = recording.record(partial(add_gradient, kept, dividing))
            except RuntimeError as error:
                # The message is of CUDA, and does not say what can be done.
                error.add_note(
                    "The gradient of a micro-batch could not be recorded. With "
                    f"{RECORDS_NOTHING}=1 in the environment, a training records nothing."
                )
                raise
            recorded = _Recorded(kept, dividing, loss, recording)
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
