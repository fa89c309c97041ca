"""Chunks of lines translated by several processes, and joined in their order.

The processes are forked from one that has loaded the models: they read the same weights in the same
memory, of which each has a copy only of what it writes to, which weights never are.
"""

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, connection, get_context, parent_process
from threading import Thread

from convs2s.decoding.formats import OutputFormat
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.interrupts import STOPPING

Chunk = Sequence[tuple[int, str]]
"""Numbered lines."""


class ChunkTranslator:
    """From a chunk to the text that is written for it."""

    def __init__(self, translator: LineTranslator, form: OutputFormat) -> None:
        self.translator, self.form = translator, form

    def __call__(self, chunk: Chunk) -> str:
        """Translate a chunk."""
        translations = self.translator.translate_chunk(chunk, self.form.n_best)
        return "".join(map(self.form.lines, translations))


_translate: ChunkTranslator
"""In a worker: what it was forked with."""


def translate_chunks(
    translate: ChunkTranslator, chunks: Iterable[Chunk], workers: int
) -> Iterator[tuple[int, str]]:
    """Translate chunks in several processes.

    Args:
        translate: what to do with each, several batches at a time in each process.
        chunks: taken no further ahead than keeps the workers busy.
        workers: processes; 1: this one. With more, nothing may have been computed with more than
            one thread before: a pool of threads does not survive a fork.

    Returns:
        For each chunk, in order, its number of lines and its text.

    Raises:
        UserError: a worker was killed.
    """
    if workers == 1:
        return ((len(chunk), translate(chunk)) for chunk in chunks)
    return _in_processes(translate, chunks, workers)


def _in_processes(
    translate: ChunkTranslator, chunks: Iterable[Chunk], workers: int
) -> Iterator[tuple[int, str]]:
    others = set(active_children())
    context = get_context("fork")
    pool = ProcessPoolExecutor(workers, context, initializer=_start, initargs=(translate,))
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
            "--batch-sentences; the same command goes on with what is missing"
        ) from None
    except (KeyboardInterrupt, GeneratorExit):
        for worker in set(active_children()) - others:
            worker.kill()  # what they are at is lost in any case, and may take a while
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(translate: ChunkTranslator) -> None:
    global _translate
    _translate = translate
    for number in STOPPING:  # they are for the parent to act on
        signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End when the parent has been killed: nobody would come for the results."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
    os._exit(1)


def _run(chunk: Chunk) -> str:
    return _translate(chunk)
