"""Requests that wait, and the one thread that translates together what can go together."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from convs2s.decoding.translate import Translation
from convs2s.errors import UserError

LULL_SECONDS, LULL_SHARE = 0.005, 0.02
"""A batch begins once no request has come for so long, or for this share of the time that the one
before took, if that is more: clients that were answered together ask again together."""

MOST_SECONDS, MOST_SHARE = 0.05, 0.1
"""A batch begins after so long, likewise, in any case."""


class BusyError(UserError):
    """More sentences wait than the server takes: the client may ask again later."""


@dataclass(frozen=True)
class Wanted:
    """What a request wants of each translation; requests that want the same share batches."""

    beam: int
    n_best: int
    attention: bool


Translate = Callable[[list[str], Wanted], list[Translation]]


@dataclass(frozen=True)
class _Job:
    texts: Sequence[str]
    wanted: Wanted
    result: "asyncio.Future[list[Translation]]"


class Batches:
    """The queue of one model; all but the translating happens in the server's own thread."""

    def __init__(self, translate: Translate, most_together: int, most_waiting: int) -> None:
        """Start empty; ``run`` translates.

        Args:
            translate: what translates texts; it is called in a thread of its own.
            most_together: sentences of a batch at most, unless one request has more.
            most_waiting: sentences that wait at most.
        """
        self._translate, self._most_together = translate, most_together
        self._most_waiting = most_waiting
        self._jobs: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._took = 0.0  # seconds, the batch before

    @property
    def waiting(self) -> int:
        """How many sentences wait; those that are being translated do not count."""
        return sum(len(job.texts) for job in self._jobs)

    async def translate(self, texts: Sequence[str], wanted: Wanted) -> list[Translation]:
        """Wait for the translations of a request; cancelled, it gives up its place.

        Raises:
            BusyError: too many sentences wait already.
            UserError: the model finds no translation.
        """
        if self.waiting + len(texts) > self._most_waiting:
            raise BusyError(
                f"the server is busy: {self.waiting} sentences wait, and {self._most_waiting} is "
                "the most: ask again in a moment"
            )
        job = _Job(texts, wanted, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._arrived.set()
        try:
            return await job.result
        finally:
            if job in self._jobs:
                self._jobs.remove(job)

    async def run(self) -> None:
        """Translate what arrives until cancelled."""
        with ThreadPoolExecutor(1, "translate") as pool:
            while True:
                await self._arrived.wait()
                await self._gather()
                jobs = self._take()
                if not self._jobs:
                    self._arrived.clear()
                started = time.monotonic()
                await self._answer(pool, jobs)
                self._took = time.monotonic() - started

    async def _gather(self) -> None:
        """Wait for as long as requests keep coming and fit into the batch, but not for long."""
        loop = asyncio.get_running_loop()
        lull = max(LULL_SECONDS, LULL_SHARE * self._took)
        end, before = loop.time() + max(MOST_SECONDS, MOST_SHARE * self._took), 0
        while before < self.waiting < self._most_together and loop.time() < end:
            before = self.waiting
            await asyncio.sleep(lull)

    def _take(self) -> list[_Job]:
        """Take the first request, and the others that want the same and fit, in their order."""
        taken: list[_Job] = []
        room = self._most_together
        for job in list(self._jobs):
            if not taken or (job.wanted == taken[0].wanted and len(job.texts) <= room):
                taken.append(job)
                self._jobs.remove(job)
                room -= len(job.texts)
        return taken

    async def _answer(self, pool: ThreadPoolExecutor, jobs: Sequence[_Job]) -> None:
        """Translate requests together; where that fails, each alone, so that one fails alone."""
        if not jobs:
            return
        texts = [text for job in jobs for text in job.texts]
        translating = asyncio.get_running_loop().run_in_executor(
            pool, self._translate, texts, jobs[0].wanted
        )
        try:
            found = iter(await translating)
        except Exception as error:
            if len(jobs) == 1:
                _settle(jobs[0], error)
                return
            for job in jobs:
                await self._answer(pool, [job])
            return
        for job in jobs:
            _settle(job, [next(found) for _ in job.texts])


def _settle(job: _Job, result: list[Translation] | Exception) -> None:
    if job.result.done():
        return  # its client has gone
    if isinstance(result, Exception):
        job.result.set_exception(result)
    else:
        job.result.set_result(result)
