"""The queue of requests, from which sentences are translated in batches.

A batch has sentences of several requests, all with the same options. One thread, beside that of the
event loop, translates all batches.
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
"""The next batch begins after a lull: a time in which no new request comes.

The lull lasts ``LULL_SECONDS``, or ``LULL_SHARE`` of the time of the previous batch if that is
longer. Clients whose requests were answered together send their next requests at about the same
time, and these should become one batch again. If every connected client has a request in the queue,
no further request can come, so the batch begins at once.
"""

MOST_SECONDS = 0.05
MOST_SHARE = 0.1
"""Maximum time for which a batch waits for a lull.

That is ``MOST_SECONDS``, or ``MOST_SHARE`` of the time of the previous batch if that is longer.
"""

WORK_PER_SENTENCE = 50
"""Maximum work of a batch (`Sentence.work`), divided by the maximum number of its sentences.

A sentence of 10 tokens with a beam of 5 has this work. If the sentences are longer, a batch has
fewer of them. So the time of a batch is limited, and a new request does not wait long for the batch
before its own. With the demo's model and 64 sentences, a batch takes at most a quarter of a second
of processor time (AMD EPYC, 2026-11-29).
"""


@dataclass(eq=False)
class _Job:
    """A request in the queue."""

    waiting: deque[Sentence]
    """The sentences that are still in the queue."""
    size: int
    """The number of all sentences of the request."""
    options: RequestOptions
    virtual_start: float
    """The virtual time (`Batches`) at which its next batch starts.

    This is the virtual time of its arrival, plus the work of the sentences already taken.
    """
    result: "asyncio.Future[list[Translation]]"
    """Its translations.

    The future is cancelled if the client leaves. It has an exception if the request is refused or
    its translation fails.
    """
    translations: list[Translation] = field(default_factory=list)
    """The finished translations, in the order of the sentences."""

    @property
    def work(self) -> int:
        """The work of the sentences that are still in the queue."""
        return sum(sentence.work for sentence in self.waiting)

    def take(self) -> Sentence:
        """Remove the next sentence from the queue and return it."""
        sentence = self.waiting.popleft()
        self.virtual_start += sentence.work
        return sentence

    def add(self, translation: Translation) -> None:
        """Add the translation of the next sentence; after the last sentence, set the result."""
        self.translations.append(translation)
        if len(self.translations) == self.size and not self.result.done():
            self.result.set_result(self.translations)


class Batches:
    """The queue of the server, from which waiting requests are translated in batches.

    ``translate`` puts a request into the queue, and ``run`` answers it. Both run in the event loop
    of the server; only the models run in another thread.

    The queue is fair (fair queuing, Demers et al. 1989): it divides the thread's time equally among
    the waiting requests, so that a small request does not wait for the end of a large one.

    Imagine a model that could translate all waiting requests at the same time, each at an equal
    share of its speed. The virtual time is the work that it would have done by now for a request
    that has been waiting since the start of the server. The next batch begins with the sentences of
    the request whose next batch this imaginary model would finish first.
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
            translate: `convs2s.serving.models.translate_tokens`. The queue's own thread calls it
                for one batch after the other.
            most_together: maximum number of sentences in a batch.
            most_waiting: maximum number of sentences in the queue.
            clients: returns the number of open connections. Each connection has at most one request
                at a time.
        """
        self._translate = translate
        self._most_together = most_together
        self._most_work = WORK_PER_SENTENCE * most_together
        self._most_waiting = most_waiting
        self._clients = clients
        self._jobs: list[_Job] = []
        self._virtual_time = 0.0
        self._arrived = asyncio.Event()
        # One thread is enough, as there is one batch at a time. `asyncio.to_thread` would use
        # several threads in turn.
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

        If this coroutine is cancelled, the request leaves the queue. The batch that is being
        translated stops if all its requests are cancelled.

        Raises:
            BusyError: too many sentences wait already, or this request was refused later to make
                room for a smaller one.
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
            BusyError: the queue would have no room even without all larger requests. Then only this
                request is refused.
        """
        missing = self.waiting + job.size - self._most_waiting
        refused = []
        for other in sorted(self._jobs, key=lambda job: job.work, reverse=True):
            if missing <= 0 or other.work <= job.work:
                break
            refused.append(other)
            missing -= len(other.waiting)
        error = BusyError(
            f"the server is busy: {self.waiting} sentences wait, at most {self._most_waiting} may: "
            "send the request again in a moment, or fewer sentences"
        )
        if missing > 0:
            raise error
        for other in refused:
            self._jobs.remove(other)
            if not other.result.done():
                other.result.set_exception(error)

    async def run(self) -> None:
        """Translate the requests in the queue, batch after batch, until this task is cancelled.

        When it is cancelled, it tells the thread to stop the current batch. It does not wait for
        the thread, which may need seconds, for example while it loads what attention needs.
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
        """Wait until the lull is over, a batch is full, every client waits, or the time is up."""
        lull = max(LULL_SECONDS, LULL_SHARE * self._seconds_of_last_batch)
        most = max(MOST_SECONDS, MOST_SHARE * self._seconds_of_last_batch)
        end = time.monotonic() + most
        waiting_before = 0
        while time.monotonic() < end:
            # The lull is over if no sentence came while this task slept.
            is_lull_over = self.waiting <= waiting_before
            is_full = self.waiting >= self._most_together
            every_client_waits = len(self._jobs) >= self._clients()
            if is_lull_over or is_full or every_client_waits:
                return
            waiting_before = self.waiting
            await asyncio.sleep(lull)

    def _take(self) -> list[tuple[_Job, Sentence]]:
        """Remove the sentences of the next batch from the queue; return each with its request.

        The requests are ordered by the end of their next batch. The batch is filled with the
        sentences of the first request, and then with those of the other requests that have the same
        options as the first.
        """

        def end_of_next_batch(job: _Job) -> float:
            """Return the virtual time at which the next batch of a request ends."""
            return job.virtual_start + min(job.work, self._most_work)

        order = sorted(self._jobs, key=end_of_next_batch)
        options = order[0].options
        batch: list[tuple[_Job, Sentence]] = []
        work = 0
        for job in order:
            if job.options != options:
                continue
            while job.waiting and len(batch) < self._most_together:
                next_work = job.waiting[0].work
                # A sentence that has too much work for any batch is a batch by itself.
                if batch and work + next_work > self._most_work:
                    break
                work += next_work
                batch.append((job, job.take()))
        # In the time of this batch, the imaginary model would have done the same work, an equal
        # share of it for each waiting request.
        self._virtual_time += work / len(self._jobs)
        self._jobs = [job for job in self._jobs if job.waiting]
        return batch

    async def _answer(self, batch: Sequence[tuple[_Job, Sentence]]) -> None:
        """Translate a batch, and set the results of the requests that are then complete.

        If the translation fails, each request is translated in a batch of its own, so that only the
        faulty request fails. The translation stops when no client waits for it any more.
        """
        jobs = list(dict.fromkeys(job for job, _ in batch))  # each request once
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
            # If `run` is cancelled, this tells the thread to stop.
            stopped.set()
        for (job, _), translation in zip(batch, translations, strict=True):
            job.add(translation)
