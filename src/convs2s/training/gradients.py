"""The gradient of an update: summed over micro-batches, and over the workers on its way back.

The parameters' gradients lie in a few buckets of memory, in about the order in which the backward
pass finishes them. A bucket whose gradients are all there is summed over the workers while the pass
goes on with the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from convs2s.training.workers import Exchange, Workers

BUCKET = 1 << 21
"""Numbers of a bucket: 8 MB of float32, of which a network takes many, and an exchange few."""

ALIGNED = 32
"""Each gradient starts at a multiple of so many numbers, where vector instructions like it."""


@dataclass
class _Bucket:
    """Gradients that are exchanged together.

    Attributes:
        flat: their memory.
        views: of each parameter, its part of it.
        missing: parameters whose gradient the running pass has not finished.
    """

    flat: Tensor
    views: dict[nn.Parameter, Tensor]
    missing: int = 0


class Gradients:
    """The gradients of a network's parameters; alone, there is nobody to exchange them with."""

    def __init__(self, parameters: Sequence[nn.Parameter], workers: Workers) -> None:
        """Make room where there are several workers."""
        self._parameters, self._workers = list(parameters), workers
        # The pass finishes first what the network uses last.
        self._buckets = list(_buckets(self._parameters[::-1])) if workers.count > 1 else []
        self._exchanges: list[Exchange] = []
        self._is_last = False
        self._bucket_of = {one: bucket for bucket in self._buckets for one in bucket.views}
        for parameter in self._bucket_of:
            parameter.register_post_accumulate_grad_hook(self._finished)

    def clear(self) -> None:
        """Begin anew."""
        self._exchanges, self._is_last = [], False
        for parameter in self._parameters:
            parameter.grad = None
        for bucket in self._buckets:
            bucket.flat.zero_()
            bucket.missing = len(bucket.views)
            for parameter, view in bucket.views.items():
                parameter.grad = view

    def expect_last(self) -> None:
        """Say that the next backward pass is this worker's last: what it finishes is whole."""
        self._is_last = True

    def _finished(self, parameter: nn.Parameter) -> None:
        """Take a gradient that a pass has finished, and exchange the buckets that are whole."""
        if not self._is_last:
            return
        self._bucket_of[parameter].missing -= 1
        # In the same order everywhere, as the workers' exchanges meet by their order alone.
        while len(self._exchanges) < len(self._buckets):
            bucket = self._buckets[len(self._exchanges)]
            if bucket.missing:
                return
            self._exchanges.append(self._workers.start_sum(bucket.flat))

    def finish(self) -> None:
        """Exchange what is left, and have all gradients summed over the workers.

        All have the same bytes then. A worker that has made no pass, or not to its end, takes part
        with what it has.
        """
        for bucket in self._buckets[len(self._exchanges) :]:
            self._exchanges.append(self._workers.start_sum(bucket.flat))
        for exchange in self._exchanges:
            self._workers.finish_sum(exchange)


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[_Bucket]:
    """Share parameters of one precision and device out to buckets, in their order."""
    sizes = [-(-parameter.numel() // ALIGNED) * ALIGNED for parameter in parameters]
    start = 0
    while start < len(parameters):
        end = start + 1
        while end < len(parameters) and sum(sizes[start : end + 1]) <= BUCKET:
            end += 1
        yield _bucket(parameters[start:end], sizes[start:end])
        start = end


def _bucket(parameters: Sequence[nn.Parameter], sizes: Sequence[int]) -> _Bucket:
    flat = parameters[0].new_zeros(sum(sizes), requires_grad=False)
    parts = zip(parameters, flat.split(list(sizes)), strict=True)
    return _Bucket(flat, {one: part[: one.numel()].view_as(one) for one, part in parts})
