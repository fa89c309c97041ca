"""Several searches at a time: batches in threads, chunks of lines in processes."""

import math
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, connection, get_context, parent_process
from threading import Event, Thread
from typing import TypeVar

from convs2s.errors import UserError

Searched = TypeVar("Searched")
Translated = TypeVar("Translated")

LEAST_SENTENCES = 8  # of a batch that is made smaller so that each thread has one
Chunk = Sequence[tuple[int, str]]  # numbered lines
_translate: Callable[[Chunk], str]  # in a worker process: what it was forked with


def sentences_for_each(
    count: int,
    threads: int,
    most: int,
) -> int:
    """Return the sentences of a batch, ``most`` of them where there are enough for each thread."""
    return min(most, max(LEAST_SENTENCES, math.ceil(count / threads)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Have torch, where it is in use, compute in this thread alone while the block runs."""
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
    search: Callable[[Searched, Event], Translated],
    batches: Sequence[Searched],
    threads: int,
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
                found = list(pool.map(search_alone, reversed(batches)))
            except BaseException:
                stopped.set()  # or Ctrl-C would wait for the batches that are being searched
                raise
    found.reverse()
    return found


def translate_chunks(
    translate: Callable[[Chunk], str],
    chunks: Iterable[Chunk],
    workers: int,
) -> Generator[tuple[int, str], None, None]:
    """Translate chunks in several processes, and yield the number of lines and the text of each.

    The processes are forked from one that has loaded the models: they read the same weights in the
    same memory. Nothing may have been computed with more than one thread before: a pool of threads
    does not survive a fork. Chunks are taken no further ahead than keeps the workers busy; a single
    worker is this process.

    Raises:
        UserError: a worker was killed.
    """
    if workers == 1:
        for chunk in chunks:
            yield len(chunk), translate(chunk)
        return
    others = set(active_children())
    pool = ProcessPoolExecutor(workers, get_context("fork"), _start, (translate,))
    ahead: deque[tuple[int, Future[str]]] = deque()
    try:
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


def _start(translate: Callable[[Chunk], str]) -> None:
    """Begin a worker's life: the parent acts on Ctrl-C; SIGTERM ends it.

    By SIGTERM a pool that has lost a worker ends the others, and waits until they have ended.
    """
    global _translate
    _translate = translate
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End when the parent has been killed: nobody would come for the results."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
    os._exit(1)


def _run(chunk: Chunk) -> str:
    return _translate(chunk)
