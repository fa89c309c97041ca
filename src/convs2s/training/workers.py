"""The processes that train one network together, one on each device, and their summed gradients.

Paper, section 4.2: each has a copy of the parameters and computes the gradients of its share of the
batch. Their sum is the same bytes everywhere, and so is the step.

The parameters' gradients lie in a few buckets of memory, in about the order in which the backward
pass finishes them. A complete bucket is summed over the workers while the pass goes on.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import NoReturn, cast

import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed import Work

from convs2s.errors import UserError

RENDEZVOUS = "CONVS2S_RENDEZVOUS"
"""Environment variable: the file where the workers of one machine meet, instead of at a port."""

TIMEOUT = timedelta(minutes=30)
"""How long a worker waits for one on another machine that has gone without a word."""

BUCKET = 1 << 21
"""Numbers of a bucket on a CPU: 8 MB of float32, many to a network, few exchanges of gloo."""

GPU_BUCKETS = (1 << 18, 25 << 18)
"""Numbers of a GPU's first bucket and of each other one, 1 and 25 MB of float32: what
DistributedDataParallel sums by NCCL. A small first one starts early, few large ones cost less."""

ALIGNED = 32
"""Each gradient starts at a multiple of so many numbers, where vector instructions like it."""


@dataclass(frozen=True)
class Workers:
    """This process among those that train together; alone, it has nobody to ask.

    Every method is a meeting: all workers call the same ones in the same order.
    """

    rank: int = 0  # number of this worker, from 0; the first one writes files and speaks
    count: int = 1  # number of workers

    @property
    def is_first(self) -> bool:
        """Whether this worker writes files and speaks."""
        return self.rank == 0

    def start_sum(self, tensor: Tensor) -> Work:
        """Start to replace a tensor by its sum over the workers; ``finish_sum`` ends it."""
        with self._talking():
            return cast(Work, torch.distributed.all_reduce(tensor, async_op=True))

    def finish_sum(self, exchange: Work) -> None:
        """Have a sum ready for what follows; all workers have the same bytes of it.

        What follows on a GPU waits for it there, and this process does not.
        """
        with self._talking():
            exchange.wait()

    def totals(self, values: Sequence[float]) -> list[float]:
        """Return each number's sum over the workers, in float64; a GPU is not waited for."""
        if self.count == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        self.finish_sum(self.start_sum(tensor))
        return cast(list[float], tensor.tolist())

    def flags(self, flags: Sequence[bool]) -> list[bool]:
        """Return for each flag whether it is set for any worker."""
        totals = self.totals([float(flag) for flag in flags])
        return [total > 0.0 for total in totals]

    def from_first(self, number: int) -> int:
        """Return the first worker's number."""
        (total,) = self.totals([float(number) if self.is_first else 0.0])
        return int(total)

    def wait(self) -> None:
        """Return when every worker is here."""
        self.totals([0.0])

    def check_same(self, parameters: Iterable[Tensor]) -> None:
        """Check that all workers have the same bytes.

        Raises:
            UserError: They have not.
        """
        if self.count == 1:
            return
        checksum = 0
        for tensor in parameters:
            numbers = tensor.detach().cpu().contiguous().reshape(-1)
            checksum = zlib.crc32(numbers.view(torch.uint8).numpy().data, checksum)
        if any(self.flags([checksum != self.from_first(checksum)])):
            raise UserError(
                f"worker {self.rank}: the workers' parameters differ; they must run the same code "
                "on the same files"
            )

    def fail(self, error: UserError) -> NoReturn:
        """End every worker with an error that all of them see, said once.

        It is raised on the first; on the others a SystemExit with the same exit code is.
        """
        if self.is_first:
            raise error
        raise SystemExit(error.exit_code)

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Say in one line that another worker has gone."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0]
            raise UserError(
                f"worker {self.rank}: another worker has ended ({reason}); the last state is "
                "intact: run the same command again"
            ) from None


ALONE = Workers()  # One process, which is all of them


class _Bucket:
    """Gradients that are exchanged together, in one piece of memory."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        sizes = [_aligned_size(parameter) for parameter in parameters]
        self.flat = parameters[0].new_zeros(sum(sizes), requires_grad=False)
        self.views: dict[nn.Parameter, Tensor] = {}  # each gradient's part of the memory
        parts = self.flat.split(sizes)
        for parameter, part in zip(parameters, parts, strict=True):
            gradient = part.narrow(0, 0, parameter.numel())
            self.views[parameter] = gradient.view_as(parameter)
        self.missing = 0  # how many gradients the running pass has not finished


def _aligned_size(parameter: nn.Parameter) -> int:
    return -(-parameter.numel() // ALIGNED) * ALIGNED


def _make_buckets(parameters: Sequence[nn.Parameter]) -> list[_Bucket]:
    """Lay out the gradients in about the order in which the backward pass finishes them."""
    first_limit, later_limit = GPU_BUCKETS if parameters[0].is_cuda else (BUCKET, BUCKET)
    group: list[nn.Parameter] = []
    groups = [group]
    numbers = 0  # of the group
    # The pass finishes first what the network uses last.
    for parameter in reversed(parameters):
        size = _aligned_size(parameter)
        limit = first_limit if group is groups[0] else later_limit
        if group and numbers + size > limit:
            group = []
            groups.append(group)
            numbers = 0
        group.append(parameter)
        numbers += size
    return list(map(_Bucket, groups))


class Gradients:
    """The gradients of a network's parameters; alone, there is nobody to exchange them with."""

    def __init__(self, parameters: Sequence[nn.Parameter], workers: Workers) -> None:
        """Make room where there are several workers; parameters are of one precision and device."""
        self._parameters = list(parameters)
        self._workers = workers
        self._buckets = _make_buckets(self._parameters) if workers.count > 1 else []
        self._exchanges: list[Work] = []
        self._is_last = False
        for bucket in self._buckets:
            for parameter in bucket.views:
                parameter.register_post_accumulate_grad_hook(partial(self._finished, bucket))

    def clear(self) -> None:
        """Begin anew."""
        self._exchanges = []
        self._is_last = False
        for parameter in self._parameters:
            parameter.grad = None
        for bucket in self._buckets:
            bucket.flat.zero_()
            bucket.missing = len(bucket.views)
            for parameter, view in bucket.views.items():
                parameter.grad = view

    def expect_last(self) -> None:
        """Say that the next backward pass is this worker's last: what it finishes is complete."""
        self._is_last = True

    def _finished(self, bucket: _Bucket, _: Tensor) -> None:
        """Take a gradient that a pass has finished, and exchange the buckets that are complete."""
        if not self._is_last:
            return
        bucket.missing -= 1
        # In the same order everywhere, as the workers' exchanges meet by their order alone.
        for following in self._buckets[len(self._exchanges) :]:
            if following.missing:
                return
            self._exchanges.append(self._workers.start_sum(following.flat))

    def finish(self) -> None:
        """Exchange what is left, and have all gradients summed over the workers.

        All have the same bytes then. A worker without a whole pass takes part with what it has.
        """
        for bucket in self._buckets[len(self._exchanges) :]:
            self._exchanges.append(self._workers.start_sum(bucket.flat))
        for exchange in self._exchanges:
            self._workers.finish_sum(exchange)


def is_worker() -> bool:
    """Return whether torchrun started this process."""
    return {"RANK", "WORLD_SIZE", "LOCAL_RANK"} <= set(os.environ)


def worker_count() -> int:
    """Return how many workers torchrun started, on all machines; 1 where it did not."""
    return int(os.environ["WORLD_SIZE"]) if is_worker() else 1


@contextmanager
def joined(device: str) -> Iterator[Workers]:
    """Meet the other workers that torchrun started, if it did, until the block ends.

    Where it fails, what the others still take part in is aborted: a graceful end would wait for it
    (github.com/pytorch/pytorch/issues/119797).
    """
    count = worker_count()
    if count == 1:
        yield ALONE
        return
    rank = int(os.environ["RANK"])
    meeting = os.environ.get(RENDEZVOUS)
    torch.distributed.init_process_group(
        "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl",
        init_method="env://" if meeting is None else f"file://{meeting}",
        rank=rank,
        world_size=count,
        timeout=TIMEOUT,
    )
    try:
        yield Workers(rank, count)
    except BaseException:
        torch.distributed.distributed_c10d._abort_process_group()
        raise
    torch.distributed.destroy_process_group()
