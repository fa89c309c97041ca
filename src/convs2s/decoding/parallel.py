"""Several searches at a time: batches in threads, chunks of lines in processes."""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, connection, get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Event, Thread
from typing import TypeVar

from convs2s.errors import UserError
from convs2s.files.interrupts import STOPPING

Searched = TypeVar("Searched")
Translated = TypeVar("Translated")

LEAST_SENTENCES = 8  # of a batch that is made smaller so that each thread has one
Chunk = Sequence[tuple[int, str]]  # numbered lines
_translate: Callable[[Chunk], str]  # in a worker process: what it was forked with


def sentences_for_each(count: int, threads: int, most: int) -> int:
    """Return the sentences of a batch, ``most`` of them where there are enough for each thread."""
    return min(most, max(LEAST_SENTENCES, -(-count // threads)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Have torch, where it is in use, compute in this thread alone while the block runs."""
    torch = sys.modules.get("torch")
    before = torch and torch.get_num_threads()
    if torch:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if torch:
            torch.set_num_threads(before)


def search_in_threads(
    search: Callable[[Searched, Event], Translated], batches: Sequence[Searched], threads: int
) -> list[Translated]:
    """Search several batches at a time, each in a thread of its own; return results in their order.

    Threads that shared each operation of one batch would wait for each other at each of them,
    hundreds of times a step: where a sleeping thread takes 40 microseconds to wake, one thread
    alone is faster (docs/notes/2026-11-23-generation-speed.md). Batches wait for Python's lock
    alone. The last, which take longest where batches are sorted by length, start first.

    ``search`` takes a batch, and an event that is set once nobody wants its result any more.
    """
    stopped = Event()

    def search_alone(batch: Searched) -> Translated:
        with one_thread():
            return search(batch, stopped)

    with one_thread():  # around the pool as well: each of its threads sets what later ones inherit
        if threads == 1 or len(batches) < 2:
            return [search(batch, stopped) for batch in batches]
        with ThreadPoolExecutor(threads) as pool:
            try:
                return list(pool.map(search_alone, batches[::-1]))[::-1]
            except BaseException:
                stopped.set()  # or Ctrl-C would wait for the batches that are being searched
                raise


def translate_chunks(
    translate: Callable[[Chunk], str], chunks: Iterable[Chunk], workers: int
) -> Iterator[tuple[int, str]]:
    """Translate chunks in several processes, and yield the number of lines and the text of each.

    The processes are forked from one that has loaded the models: they read the same weights in the
    same memory. Nothing may have been computed with more than one thread before: a pool of threads
    does not survive a fork. Chunks are taken no further ahead than keeps the workers busy; a single
    worker is this process. That a worker was killed is a UserError.
    """
    if workers == 1:
        yield from ((len(chunk), translate(chunk)) for chunk in chunks)
        return
    others = set(active_children())
    context = get_context("fork")
    pool = ProcessPoolExecutor(workers, context, initializer=_start, initargs=(translate,))
    ahead: deque[tuple[int, Future[str]]] = deque()
    try:
        pool.submit(int)  # forks all workers
        alive = set(active_children()) - others
        Thread(target=_end_together, args=(alive, workers), daemon=True).start()
        for chunk in chunks:
            ahead.append((len(chunk), pool.submit(_run, chunk)))
            if len(ahead) > 2 * workers:
                lines, text = ahead.popleft()
                yield lines, text.result()
        for lines, text in ahead:
            yield lines, text.result()
    except BrokenProcessPool:
        raise UserError(
            "a worker was killed, perhaps for want of memory: use fewer --workers or a smaller "
            "--batch-sentences; run the same command again to resume"
        ) from None
    except (KeyboardInterrupt, GeneratorExit):
        for worker in set(active_children()) - others:
            worker.kill()  # its chunk is lost in any case, and may take a while
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_together(alive: Collection[BaseProcess], workers: int) -> None:
    """Kill the workers that are left once the first of them has ended.

    From Python 3.12 on, a broken pool sends SIGTERM, which workers ignore, and waits for them with
    the lock that ``submit`` takes: the caller may never learn of the loss
    (concurrent.futures.process, ``_terminate_broken``). A pool that is shut down has no more work.
    """
    if len(alive) == workers:
        connection.wait([worker.sentinel for worker in alive])
    for worker in alive:
        worker.kill()


def _start(translate: Callable[[Chunk], str]) -> None:
    global _translate
    _translate = translate
    for number in STOPPING:  # the parent acts on signals
        signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End when the parent has been killed: nobody would come for the results."""
    if (parent := parent_process()) is not None:
        connection.wait([parent.sentinel])
    os._exit(1)


def _run(chunk: Chunk) -> str:
    return _translate(chunk)
