"""Run several searches at a time: batches in threads, chunks of lines in processes."""

import math
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice, repeat
from multiprocessing import active_children, connection, get_context, parent_process
from threading import Event, Thread
from typing import Protocol, TypeVar

from convs2s.errors import UserError

Searched = TypeVar("Searched")
Result = TypeVar("Result")

LEAST_SENTENCES = 8
"""Minimum number of sentences in a batch that is made smaller to give each thread a batch."""

Chunk = Sequence[tuple[int, str]]
"""Numbered lines."""

_translate: Callable[[Chunk], str]
"""Translates the chunks of a worker process; `_start` sets it."""


class StoppedError(Exception):
    """A search ended early, because its result is no longer needed."""


class _Ending(Protocol):
    """The part of ``onnxruntime.RunOptions`` that ends the calls that run with them."""

    terminate: bool


class Stop(Event):
    """An event that any thread sets once the result of a search is no longer needed.

    The search looks at the event after each step. A single call of ONNX Runtime that makes all
    steps cannot look at it, so that call is ended through its options.
    """

    def __init__(self) -> None:
        """Begin unset."""
        super().__init__()
        self._running: list[_Ending] = []

    def set(self) -> None:
        """Set the event, and end the calls that run in blocks of `ending`."""
        super().set()
        for options in tuple(self._running):
            options.terminate = True

    @contextmanager
    def ending(self, options: _Ending) -> Iterator[None]:
        """While the block runs, end the calls with these options once the event is set."""
        self._running.append(options)
        # `set` does not see options that are added after it. So look at the event here, too, and
        # only after the line above: otherwise a `set` between the two lines would be lost.
        options.terminate = self.is_set()
        try:
            yield
        finally:
            self._running.remove(options)


def in_chunks(
    lines: Iterable[str],
    size: int,
    done: int = 0,
) -> Iterator[Chunk]:
    """Number lines from 1, and yield those after the first ``done`` in chunks of ``size``."""
    rest = islice(enumerate(lines, start=1), done, None)
    while chunk := list(islice(rest, size)):
        yield chunk


def sentences_per_batch(
    count: int,
    threads: int,
    limit: int,
) -> int:
    """Return the number of sentences in a batch, at most ``limit``.

    It is ``limit`` if ``count`` sentences are enough to give each thread such a batch. Otherwise
    batches are smaller, so that each thread has one, but not smaller than ``LEAST_SENTENCES``.
    """
    return min(limit, max(LEAST_SENTENCES, math.ceil(count / threads)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Make torch, if it is imported, compute only in this thread while the block runs."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def search_in_threads(
    search: Callable[[Searched, Stop], Result],
    batches: Sequence[Searched],
    threads: int,
    stopped: Stop | None = None,
) -> list[Result]:
    """Search ``threads`` batches at a time, and return the results in the order of the batches.

    One thread searches each batch. If several threads shared the operations of one batch, they
    would wait for each other after each operation, hundreds of times a step. A sleeping thread may
    take 40 microseconds to wake, and then several threads are slower than one
    (docs/notes/2026-11-23-generation-speed.md). Threads with batches of their own wait only for
    Python's lock.

    The last batches start first. They take longest if the batches are sorted by ascending length.

    ``search`` takes a batch, and an event that is set once the results are no longer needed. The
    event is ``stopped``, or a new one if ``stopped`` is None.
    """
    stopped = stopped or Stop()
    # New threads inherit torch's number of threads.
    with one_thread():
        if threads == 1 or len(batches) < 2:
            return [search(batch, stopped) for batch in batches]
        with ThreadPoolExecutor(threads) as pool:
            try:
                results = list(pool.map(search, reversed(batches), repeat(stopped)))
            except BaseException:
                # Otherwise Ctrl-C would wait until the batches in the threads are finished.
                stopped.set()
                raise
    results.reverse()  # the batches were searched from the last to the first
    return results


def translate_chunks(
    translate: Callable[[Chunk], str],
    chunks: Iterable[Chunk],
    workers: int,
) -> Generator[tuple[int, str], None, None]:
    """Translate chunks in ``workers`` processes.

    For each chunk, in their order, yield its number of lines and its translation.

    The processes are forked from this one, which has loaded the models, so that all read the same
    weights in the same memory. Before the call, this process must have computed with a single
    thread only, because a pool of threads does not survive a fork. At most two chunks for each
    worker, and one more, are taken from ``chunks`` ahead of the results, which keeps the workers
    busy and bounds the memory. If ``workers`` is 1, this process translates, without a fork.

    Raises:
        UserError: a worker was killed.
    """
    if workers == 1:
        for chunk in chunks:
            yield len(chunk), translate(chunk)
        return
    other_children = set(active_children())
    pool = ProcessPoolExecutor(workers, get_context("fork"), _start, (translate,))
    ahead: deque[tuple[int, Future[str]]] = deque()
    try:
        for chunk in chunks:
            ahead.append((len(chunk), pool.submit(_run, chunk)))
            if len(ahead) > 2 * workers:
                lines, future = ahead.popleft()
                yield lines, future.result()
        for lines, future in ahead:
            yield lines, future.result()
    except BrokenProcessPool:
        raise UserError(
            "a worker was killed, perhaps for lack of memory; to resume, run the same command "
            "again, with fewer --workers or a smaller --batch-sentences"
        ) from None
    except (KeyboardInterrupt, GeneratorExit):
        for worker in set(active_children()) - other_children:
            # Do not wait for its chunk, whose translation is lost in any case.
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(translate: Callable[[Chunk], str]) -> None:
    """Prepare a new worker process.

    The worker ignores Ctrl-C, which the parent process handles. SIGTERM ends the worker: a pool
    that loses one worker sends SIGTERM to the others and waits until they have ended.
    """
    global _translate
    _translate = translate
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent process has ended or was killed, and then end this worker."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
    os._exit(1)


def _run(chunk: Chunk) -> str:
    return _translate(chunk)
