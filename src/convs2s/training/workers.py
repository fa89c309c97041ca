"""Workers: the processes that train one network together, one process per device.

Each worker has a copy of the parameters and computes the gradients of its share of every batch
(paper, section 4.2). The gradients are then summed over the workers. The sum has the same bytes on
every worker, so every worker makes the same optimizer step.

The gradients are stored in a few contiguous buckets, in about the order in which the backward pass
finishes them. As soon as a bucket is complete, its sum over the workers is started, while the
backward pass goes on. If the pass is the replay of a CUDA graph, all sums are started after it.
"""

import math
import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import NoReturn, cast

import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed import ReduceOp, Work
from torch.distributed.rendezvous import rendezvous

from convs2s.errors import LostWorkerError, UserError
from convs2s.training.heartbeat import PULSE
from convs2s.training.network import choose_interface

RENDEZVOUS = "CONVS2S_RENDEZVOUS"
"""Environment variable with the path of a file.

The workers of one machine find each other through this file, so none listens on a port.
"""

TIMEOUT = timedelta(minutes=30)
"""How long a worker waits in a collective for a worker on another machine that does not answer.

In a job with a time limit, a worker waits a fifth of the time that is left, if that is less
(``joined`` says why a fifth).
"""

LEAST_TIMEOUT = timedelta(minutes=1)
"""A worker waits at least this long, because the workers do not start at the same time."""

BUCKET = 1 << 21
"""Maximum number of elements in a bucket on a CPU: 8 MB of float32.

A large network has many such buckets, so the first sums start early in the backward pass. Smaller
buckets would need more exchanges by gloo.
"""

GPU_BUCKETS = (1 << 18, 25 << 18)
"""Maximum number of elements in the first bucket and in each later bucket on a GPU.

They are 1 MB and 25 MB of float32, the bucket sizes of DistributedDataParallel with NCCL. The sum
of a small first bucket starts early. A few large buckets cost less than many small ones.
"""

ALIGNED = 32
"""Each gradient starts at a multiple of this many elements, which suits vector instructions."""


@dataclass(frozen=True)
class Workers:
    """This process and the number of workers that train together.

    ``start_sum``, ``start_maximum``, ``finish``, ``totals``, ``flags``, ``least``, ``from_first``,
    ``wait`` and ``check_same`` are collectives: every worker must call the same ones in the same
    order, or they all block. Only ``totals`` and the methods after it also work for a single
    worker, without torch.distributed.
    """

    rank: int = 0  # number of this worker, from 0; worker 0 alone writes files and logs
    count: int = 1  # number of workers

    @property
    def is_first(self) -> bool:
        """Whether this is the worker that writes files and logs."""
        return self.rank == 0

    def start_sum(self, tensor: Tensor) -> Work:
        """Start to replace a tensor, in place, by its sum over the workers.

        The tensor must not be used before ``finish`` was called with the returned handle.
        """
        with self._reporting_lost_worker():
            return cast(Work, torch.distributed.all_reduce(tensor, async_op=True))

    def start_maximum(self, tensor: Tensor) -> Work:
        """Start to replace each element of a tensor, in place, by its maximum over the workers.

        The tensor must not be used before ``finish`` was called with the returned handle.
        """
        with self._reporting_lost_worker():
            work = torch.distributed.all_reduce(tensor, ReduceOp.MAX, async_op=True)
            return cast(Work, work)

    def finish(self, exchange: Work) -> None:
        """Finish what was started; the tensor then has the same bytes on every worker.

        For a tensor on a GPU this process does not wait: later work on the GPU waits.
        """
        with self._reporting_lost_worker(), PULSE.waiting():
            exchange.wait()

    def totals(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over the workers, in float64.

        The values are summed on the CPU, so this does not wait for a GPU.
        """
        if self.count == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        self.finish(self.start_sum(tensor))
        return cast(list[float], tensor.tolist())

    def flags(self, flags: Sequence[bool]) -> list[bool]:
        """Return for each flag whether any worker has set it."""
        totals = self.totals([float(flag) for flag in flags])
        return [total > 0.0 for total in totals]

    def least(self, number: int) -> int:
        """Return the least of the workers' numbers; it must be exact in float64."""
        if self.count == 1:
            return number
        # The least number is the negative of the largest negative.
        tensor = torch.tensor(-number, dtype=torch.float64)
        self.finish(self.start_maximum(tensor))
        return -int(tensor)

    def from_first(self, number: int) -> int:
        """Return the number that the first worker passes; it must be exact in float64."""
        # The other workers add 0.
        (total,) = self.totals([float(number) if self.is_first else 0.0])
        return int(total)

    def wait(self) -> None:
        """Wait until every worker has called this method."""
        self.totals([0.0])

    def check_same(self, parameters: Iterable[Tensor]) -> None:
        """Check that the parameters have the same bytes on all workers.

        Raises:
            UserError: The parameters differ. Every worker raises it.
        """
        if self.count == 1:
            return
        checksum = 0
        for tensor in parameters:
            numbers = tensor.detach().cpu().contiguous().reshape(-1)
            checksum = zlib.crc32(numbers.view(torch.uint8).numpy().data, checksum)
        differs = checksum != self.from_first(checksum)
        if any(self.flags([differs])):
            raise UserError(
                f"worker {self.rank}: the workers' parameters differ; they must run the same code "
                "on the same files"
            )

    def fail(self, error: UserError) -> NoReturn:
        """End this worker with an error that every worker has found; it is reported once.

        Every worker must call this method with the same class of error. The first worker raises the
        error. The other workers raise SystemExit with the exit code of the error, so they print
        nothing.
        """
        if self.is_first:
            raise error
        raise SystemExit(error.exit_code)

    @contextmanager
    def _reporting_lost_worker(self) -> Iterator[None]:
        """Turn a failed exchange in the block into a UserError: another worker has ended."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0]
            raise LostWorkerError(
                f"worker {self.rank}: another worker has ended ({reason}); the last state is "
                "intact: run the same command again"
            ) from None


ALONE = Workers()  # The only worker of a training


class Notices:
    """Numbers that workers tell each other after every update, without waiting.

    They are exchanged while the next update is computed.
    """

    def __init__(self, workers: Workers) -> None:
        """Begin without numbers."""
        self._workers = workers
        # The running exchanges, each with the tensor that will have the maxima.
        self._running: deque[tuple[Work, Tensor]] = deque()

    def exchange(self, numbers: Sequence[float], *, waits: bool) -> list[float]:
        """Tell the other workers some numbers; return each number's maximum over the workers.

        Every worker must call this after the same update, with equally many numbers. With several
        workers, the maxima are those of the previous call, which have long arrived, or -inf if
        there was no previous call. With ``waits``, the numbers of this call count, too.
        """
        if self._workers.count == 1:
            return list(numbers)
        largest = [-math.inf] * len(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64)
        self._running.append((self._workers.start_maximum(tensor), tensor))
        may_stay_running = 0 if waits else 1
        while len(self._running) > may_stay_running:
            exchange, maxima = self._running.popleft()
            self._workers.finish(exchange)
            largest = list(map(max, largest, maxima.tolist()))
        return largest


class _Bucket:
    """Gradients that are summed over the workers together, in one contiguous tensor."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        sizes = [_aligned_size(parameter) for parameter in parameters]
        self.flat = parameters[0].new_zeros(sum(sizes), requires_grad=False)
        # Each parameter's gradient, a view of ``flat``.
        self.views: dict[nn.Parameter, Tensor] = {}
        parts = self.flat.split(sizes)
        for parameter, part in zip(parameters, parts, strict=True):
            # Without the elements that only fill up to the next multiple of ``ALIGNED``.
            gradient = part.narrow(0, 0, parameter.numel())
            self.views[parameter] = gradient.view_as(parameter)
        # How many gradients the last backward pass has not finished yet.
        self.missing = 0

    def attach(self) -> None:
        """Let backward passes add to this bucket."""
        for parameter, view in self.views.items():
            parameter.grad = view


def _aligned_size(parameter: nn.Parameter) -> int:
    """Return the number of elements of a parameter, rounded up to a multiple of ``ALIGNED``."""
    return math.ceil(parameter.numel() / ALIGNED) * ALIGNED


def _make_buckets(parameters: Sequence[nn.Parameter]) -> list[_Bucket]:
    """Make buckets for the gradients, in about the order in which the backward pass finishes them.

    Every worker makes the same buckets. A gradient that is larger than the limit of a bucket has a
    bucket of its own.
    """
    first_limit, later_limit = (
        GPU_BUCKETS if parameters[0].is_cuda else (BUCKET, BUCKET)
    )
    group: list[nn.Parameter] = []
    groups = [group]
    group_size = 0
    # The backward pass starts at the parameters that the network uses last.
    for parameter in reversed(parameters):
        size = _aligned_size(parameter)
        limit = first_limit if group is groups[0] else later_limit
        if group and group_size + size > limit:
            group = []
            groups.append(group)
            group_size = 0
        group.append(parameter)
        group_size += size
    return list(map(_Bucket, groups))


class Gradients:
    """The gradients of a network's parameters, summed over the workers.

    The gradient of an update is made in this order:

    1. ``clear``.
    2. A backward pass for each micro-batch of this worker. The passes add up in ``parameter.grad``.
    3. ``expect_last``, directly before the last backward pass of this worker.
    4. ``finish``. From then on ``parameter.grad`` is the sum over the workers.

    If a pass fails, call ``start_over`` and make all passes again, from step 2 on. The other
    workers do not notice.

    Every worker must call ``clear`` and ``finish`` once for each update, even if it has no
    micro-batch: the sums over the buckets are collectives. Nothing is exchanged if there is only
    one worker.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        workers: Workers,
        *,
        in_place: bool = False,
    ) -> None:
        """Allocate buckets for the gradients, if there are several workers or with ``in_place``.

        All parameters must have the same dtype and be on the same device. Gradients in buckets have
        the same memory in all updates.
        """
        self._parameters = parameters
        self._workers = workers
        has_buckets = in_place or workers.count > 1
        self._buckets = _make_buckets(parameters) if has_buckets else []
        self._exchanges: list[Work] = []
        self._is_last = False
        if workers.count == 1:
            return
        for bucket in self._buckets:
            for parameter in bucket.views:
                parameter.register_post_accumulate_grad_hook(
                    partial(self._finished, bucket)
                )

    def clear(self) -> None:
        """Set all gradients to zero, or to None if there are no buckets."""
        self._exchanges = []
        self.start_over()

    def start_over(self) -> None:
        """Forget the passes of this update, except for gradients whose sums have started.

        These gradients were complete: the pass that failed had only those of earlier layers to
        finish. They stay as they are, computed with the dropout masks of the failed pass. The new
        passes compute them again, but ``finish`` drops the result.
        """
        self._is_last = False
        for parameter in self._parameters:
            parameter.grad = None
        buckets = self._buckets[len(self._exchanges) :]
        for bucket in buckets:
            bucket.missing = len(bucket.views)
            bucket.attach()
        if buckets:
            torch._foreach_zero_([bucket.flat for bucket in buckets])

    def expect_last(self) -> None:
        """Declare that the next backward pass is the last one of this worker.

        Each gradient that this pass finishes is complete, so the sum of its bucket may start. Do
        not call this before the replay of a recorded pass, in which torch calls no hooks.
        """
        self._is_last = True

    def _finished(self, bucket: _Bucket, _: Tensor) -> None:
        """Count a gradient that a backward pass has finished; start the sums of complete buckets.

        torch calls this hook after it has added to the gradient of a parameter.
        """
        if not self._is_last:
            return
        bucket.missing -= 1
        # torch.distributed matches the exchanges of the workers by their order alone. So every
        # worker exchanges the buckets in order, and a complete bucket waits for those before it.
        for following in self._buckets[len(self._exchanges) :]:
            if following.missing:
                return
            self._exchanges.append(self._workers.start_sum(following.flat))

    def finish(self) -> None:
        """Start the sums of the remaining buckets, and finish all sums.

        Every worker then has the same bytes.
        """
        if self._workers.count == 1:
            return
        for bucket in self._buckets[len(self._exchanges) :]:
            self._exchanges.append(self._workers.start_sum(bucket.flat))
        for exchange in self._exchanges:
            self._workers.finish(exchange)
        for bucket in self._buckets:
            bucket.attach()  # after a failed pass, parameters may have other gradients


def is_worker() -> bool:
    """Return whether torchrun started this process."""
    return {"RANK", "WORLD_SIZE", "LOCAL_RANK"} <= set(os.environ)


def worker_count() -> int:
    """Return the number of workers on all machines; 1 if torchrun did not start this process."""
    return int(os.environ["WORLD_SIZE"]) if is_worker() else 1


def _timeout(seconds: float) -> timedelta:
    """Return a duration in seconds, but at least ``LEAST_TIMEOUT`` and at most ``TIMEOUT``."""
    most = min(TIMEOUT.total_seconds(), seconds)
    return max(LEAST_TIMEOUT, timedelta(seconds=most))


@contextmanager
def joined(device: str, seconds: float = math.inf) -> Iterator[Workers]:
    """While the block runs, be connected to the other workers that torchrun started.

    Yield the workers; without torchrun, yield ``ALONE``. If the block raises an exception, the
    process group is aborted: a graceful shutdown would wait for exchanges that never end
    (github.com/pytorch/pytorch/issues/119797).

    ``seconds`` is the time that this job has left. A worker waits no longer than that for the
    others to connect.

    Raises:
        UserError: The workers did not find each other in time.
    """
    count = worker_count()
    if count == 1:
        yield ALONE
        return
    rank = int(os.environ["RANK"])
    PULSE.worker = rank
    timeout = _timeout(seconds)
    # Gloo waits for a connection five times as long as its timeout says.
    gloo_timeout = _timeout(seconds / 5)
    meeting_file = os.environ.get(RENDEZVOUS)
    meeting = "env://" if meeting_file is None else f"file://{meeting_file}"
    try:
        store, _, _ = next(rendezvous(meeting, rank, count, timeout=timeout))
        store.set_timeout(timeout)
        if meeting_file is None:
            choose_interface(store)
        torch.distributed.init_process_group(
            "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl",
            store=store,
            rank=rank,
            world_size=count,
            timeout=gloo_timeout,
        )
    except RuntimeError as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"worker {rank}: the workers did not connect in time ({reason}); see the network of "
            "several nodes in docs/cluster.md"
        ) from None
    try:
        yield Workers(rank, count)
    except BaseException:
        torch.distributed.distributed_c10d._abort_process_group()
        raise
    torch.distributed.destroy_process_group()
