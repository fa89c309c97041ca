"""The queue of requests, from which sentences are translated in batches.

Sentences of requests with the same options leave the queue as one batch. One thread, which is not
that of the event loop, translates all batches.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from convs2s.decoding.parallel import Stop
from convs2s.decoding.translate import Translation
from convs2s.serving.requests import BusyError, RequestOptions, Sentence

LULL_SECONDS = 0.001
LULL_SHARE = 0.02
"""A batch begins after a lull, which is a time without a new request.

The lull lasts ``LULL_SECONDS``, or ``LULL_SHARE`` of the time of the previous batch if that is
longer. Clients that were answered together send their next requests together, and these should
become one batch again. If no other client is connected, there is no lull.
"""

MOST_SECONDS = 0.05
MOST_SHARE = 0.1
"""A batch waits for a lull at most ``MOST_SECONDS``, or ``MOST_SHARE`` of the time of the previous
batch if that is longer."""

WORK_PER_SENTENCE = 50
"""Work of a batch for each of the sentences that it may have, such as 10 tokens with a beam of 5.

A batch of longer sentences has fewer of them. With the demo's model and 64 sentences, the longest
batch takes a quarter of a second of processor time (AMD EPYC, 2026-11-29). A new request waits that
long for the batch before its own.
"""


@dataclass(eq=False)
class _Job:
    """A request in the queue."""

    waiting: deque[Sentence]
    """The sentences that have not left."""
    size: int
    """The number of all sentences."""
    options: RequestOptions
    turn: float
    """The virtual time at which it arrived, and the work of its sentences that have left."""
    result: "asyncio.Future[list[Translation]]"
    """Done without translations if the client has gone, or the request was refused."""
    translations: list[Translation] = field(default_factory=list)

    @property
    def work(self) -> int:
        """The work of the sentences that have not left."""
        return sum(sentence.work for sentence in self.waiting)

    def take(self) -> Sentence:
        """Remove the next sentence from the queue and return it."""
        sentence = self.waiting.popleft()
        self.turn += sentence.work
        return sentence

    def add(self, translation: Translation) -> None:
        """Add the translation of its next sentence. After the last one the result is set."""
        self.translations.append(translation)
        if len(self.translations) == self.size and not self.result.done():
            self.result.set_result(self.translations)


class Batches:
    """The queue of one model, from which waiting requests are translated in batches.

    ``translate`` puts a request into the queue, and ``run`` answers it. Both run in the event loop
    of the server; only the model itself runs in another thread.

    The queue is fair (fair queuing, Demers et al. 1989): it divides the model's time equally among
    the requests that wait, so that a small one does not wait for the end of a large one. The
    virtual time is the work that a request would have got by now if each batch had been divided
    equally. The next sentence is that of the request which would then get its next batch first.
    """

    def __init__(
        self,
        translate: Callable[..., list[Translation]],
        most_together: int,
        most_waiting: int,
        clients: Callable[[], int],
    ) -> None:
        """Make an empty queue.

        Args:
            translate: `Translator.translate_tokens`; one other thread calls it, for one batch at a
                time.
            most_together: maximum number of sentences in a batch.
            most_waiting: maximum number of sentences in the queue.
            clients: returns the number of open connections. Each has one request at a time.
        """
        self._translate = translate
        self._most_together = most_together
        self._most_work = WORK_PER_SENTENCE * most_together
        self._most_waiting = most_waiting
        self._clients = clients
        self._jobs: list[_Job] = []
        self._virtual_time = 0.0
        self._arrived = asyncio.Event()
        # `asyncio.to_thread` would use several threads in turn.
        self._thread = ThreadPoolExecutor(1, "translate")
        self._seconds_of_last_batch = 0.0

    @property
    def waiting(self) -> int:
        """Number of sentences in the queue, without those that are being translated."""
        return sum(len(job.waiting) for job in self._jobs)

    async def translate(
        self,
        sentences: Sequence[Sentence],
        options: RequestOptions,
    ) -> list[Translation]:
        """Put a request into the queue, and return its translations when they are made.

        If this coroutine is cancelled, the request leaves the queue, and a batch that has no other
        sentences stops.

        Raises:
            BusyError: too many sentences wait already, or would wait after smaller requests came.
        """
        if not sentences:
            return []
        loop = asyncio.get_running_loop()
        result: asyncio.Future[list[Translation]] = loop.create_future()
        size = len(sentences)
        job = _Job(deque(sentences), size, options, self._virtual_time, result)
        self._make_room(job)
        self._jobs.append(job)
        self._arrived.set()
        try:
            return await result
        finally:
            if job in self._jobs:
                self._jobs.remove(job)

    def _make_room(self, job: _Job) -> None:
        """Refuse larger requests, the largest first, until the queue has room for this one.

        Raises:
            BusyError: it would not have room.
        """
        missing = self.waiting + job.size - self._most_waiting
        refused = []
        for other in sorted(self._jobs, key=lambda job: job.work, reverse=True):
            if missing <= 0 or other.work <= job.work:
                break
            refused.append(other)
            missing -= len(other.waiting)
        error = BusyError(
            f"the server is busy: {self.waiting} sentences wait, and {self._most_waiting} is "
            "the most: ask again in a moment, or for fewer"
        )
        if missing > 0:
            raise error
        for other in refused:
            self._jobs.remove(other)
            if not other.result.done():
                other.result.set_exception(error)

    async def run(self) -> None:
        """Translate the requests in the queue, batch after batch, until cancelled.

        The batch that is being translated is then told to stop, but not waited for: the thread may
        just be loading what attention needs, which takes seconds.
        """
        try:
            while True:
                await self._arrived.wait()
                await self._wait_for_more()
                if not self._jobs:
                    self._arrived.clear()
                    continue
                started = time.monotonic()
                await self._answer(self._take())
                self._seconds_of_last_batch = time.monotonic() - started
        finally:
            self._thread.shutdown(wait=False)

    async def _wait_for_more(self) -> None:
        """Wait until a lull has passed, the batch is full, nobody else can ask, or time is up."""
        lull = max(LULL_SECONDS, LULL_SHARE * self._seconds_of_last_batch)
        most = max(MOST_SECONDS, MOST_SHARE * self._seconds_of_last_batch)
        end = time.monotonic() + most
        waiting_before = 0
        while (
            waiting_before < self.waiting < self._most_together
            and len(self._jobs) < self._clients()
            and time.monotonic() < end
        ):
            waiting_before = self.waiting
            await asyncio.sleep(lull)

    def _take(self) -> list[tuple[_Job, Sentence]]:
        """Remove the sentences of the next batch from the queue; return each with its request.

        They are the next sentence, and all others that still fit of requests with the same options.
        """

        def end_of_next_batch(job: _Job) -> float:
            return job.turn + min(job.work, self._most_work)

        order = sorted(self._jobs, key=end_of_next_batch)
        options = order[0].options
        batch: list[tuple[_Job, Sentence]] = []
        work = 0
        for job in order:
            if job.options != options:
                continue
            while job.waiting and len(batch) < self._most_together:
                next_work = job.waiting[0].work
                if batch and work + next_work > self._most_work:
                    break
                work += next_work
                batch.append((job, job.take()))
        self._virtual_time += work / len(self._jobs)
        self._jobs = [job for job in self._jobs if job.waiting]
        return batch

    async def _answer(self, batch: Sequence[tuple[_Job, Sentence]]) -> None:
        """Translate sentences together, and set the results of the requests that are then whole.

        If that fails, translate the sentences of each request alone, so that only the faulty one
        fails. If nobody waits for any of them any more, the translation stops.
        """
        jobs = list(dict.fromkeys(job for job, _ in batch))
        stopped = Stop()

        def stop_if_all_are_done(_: object) -> None:
            if all(job.result.done() for job in jobs):
                stopped.set()

        for job in jobs:
            job.result.add_done_callback(stop_if_all_are_done)
        sentences = [(sentence.text, sentence.tokens) for _, sentence in batch]
        translate_all = partial(self._translate, sentences, stopped, **jobs[0].options)
        try:
            translations = await asyncio.get_running_loop().run_in_executor(
                self._thread, translate_all
            )
        except Exception as error:
            for job in jobs:
                if job.result.done():
                    continue
                if len(jobs) > 1:
                    await self._answer([part for part in batch if part[0] is job])
                else:
                    job.result.set_exception(error)
            return
        finally:
            # If `run` is cancelled, the thread goes on until it sees this.
            stopped.set()
        for (job, _), translation in zip(batch, translations, strict=True):
            job.add(translation)
