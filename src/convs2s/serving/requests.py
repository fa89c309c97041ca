"""Read requests, check their limits, and translate them in batches from a queue.

Requests with the same options leave the queue as one batch. One thread, which is not that of the
event loop, translates all batches.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

from convs2s.api.translator import OF_A_MODEL, check_texts
from convs2s.config.decoding import DecodingSettings
from convs2s.config.messages import validated
from convs2s.config.section import PositiveInt, Section
from convs2s.decoding.split_lines import SplitLines
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError, failures_of_file
from convs2s.serving.settings import ServerSettings

DRAINED_BYTES = 16 << 20
"""Number of bytes up to which a request that is too large is still read, and dropped.

A client that sends its whole request before it reads would otherwise not get the answer.
"""

LULL_SECONDS = 0.005
LULL_SHARE = 0.02
"""A batch begins after a lull, which is a time without a new request.

The lull lasts ``LULL_SECONDS``, or ``LULL_SHARE`` of the time of the previous batch if that is
longer. Clients that were answered together send their next requests together, and these should
become one batch again.
"""

MOST_SECONDS = 0.05
MOST_SHARE = 0.1
"""A batch waits for a lull at most ``MOST_SECONDS``, or ``MOST_SHARE`` of the time of the previous
batch if that is longer."""


class RefusedError(UserError):
    """A request that the server refuses to translate, with the HTTP ``status`` of the answer."""

    status: int


class TooLargeError(RefusedError):
    """A request exceeds a limit of the server."""

    status = 413


class BusyError(RefusedError):
    """Too many sentences wait already. The client may send the request again later."""

    status = 503


class _Request(Section):
    texts: list[str]  # raw texts, each on one line
    beam: PositiveInt  # hypotheses kept at each step
    n_best: PositiveInt = 1  # number of hypotheses in each translation
    attention: bool = False  # whether each translation has its attention
    split_sentences: bool = True  # whether each sentence is translated by itself


RequestOptions = Mapping[str, object]
"""The keyword arguments of `Translator.translate` for a request.

Requests with equal options are translated in the same batch.
"""


def check_search(search: DecodingSettings, settings: ServerSettings) -> None:
    """Check that the server's defaults are within its own limits.

    Raises:
        UserError: the default beam exceeds the largest beam, or a request may have more texts than
            may wait.
    """
    if search.beam > settings.largest_beam:
        raise UserError(
            f"--beam {search.beam}: --largest-beam is {settings.largest_beam}: raise that"
        )
    if settings.most_texts > settings.most_waiting:
        raise UserError(
            f"--most-texts {settings.most_texts}: --most-waiting is {settings.most_waiting}: raise "
            "that, or a request with that many sentences would always be refused"
        )


async def read_body(parts: AsyncIterator[bytes], most: int) -> bytes:
    """Return the body of a request, which has at most ``most`` bytes.

    A larger body is read to its end, up to ``DRAINED_BYTES``, but not kept.

    Raises:
        TooLargeError: the body has more than ``most`` bytes.
    """
    body = bytearray()
    size = 0
    async for part in parts:
        size += len(part)
        if size <= most:
            body += part
        elif size > DRAINED_BYTES:
            break
    if size > most:
        raise TooLargeError(
            f"request: more than {most:,} bytes, the most that this server takes: send fewer "
            "sentences at a time, or run `convs2s translate --input FILE`"
        )
    return bytes(body)


def read_json(body: bytes) -> dict[str, object]:
    """Return the JSON object in a body.

    Raises:
        UserError: the body is not UTF-8, not JSON, or not an object.
    """
    with failures_of_file("request", 'not JSON in UTF-8, such as {"texts": ["..."]}'):
        fields = json.loads(body.decode())
    if not isinstance(fields, dict):
        raise UserError('request: expected a JSON object: send {"texts": ["..."]}')
    return fields


def check_request(
    fields: Mapping[str, object],
    settings: ServerSettings,
    search: DecodingSettings,
    language: str,
) -> tuple[SplitLines, RequestOptions]:
    """Return the sentences of a request and the options to translate them with.

    ``fields`` are the keys of the request. ``search`` has the values of other search settings. The
    texts, which are in ``language``, are split into sentences if both the server and the request
    allow it; otherwise each text is one sentence.

    Raises:
        TooLargeError: the request exceeds a limit of ``settings``.
        UserError: the request has unknown keys, or values of another kind or out of bounds.
    """
    request = validated(_Request, {"beam": search.beam, **fields}, "request")
    if request.beam > settings.largest_beam:
        raise UserError(f"request: beam: expected at most {settings.largest_beam}")
    search = search.model_copy(update={"beam": request.beam})
    search.check_n_best(request.n_best, "request: n_best")
    if len(request.texts) > settings.most_texts:
        raise TooLargeError(
            f"request: {len(request.texts)} texts, and {settings.most_texts} is the most: send "
            "them in several requests"
        )
    # Half a surrogate pair has no UTF-8. It must not raise here, because check_texts refuses it
    # below with a better message.
    sizes = [len(text.encode(errors="surrogatepass")) for text in request.texts]
    longest = max(sizes, default=0)
    if longest > settings.longest_text:
        raise TooLargeError(
            f"request: a text of {longest:,} bytes, and {settings.longest_text:,} is the most: "
            "send one sentence at a time"
        )
    # Attention has a weight for each pair of a target and a source token, so its size grows with
    # the square of the length: some 40 MB per layer for one text of the default longest_text.
    weights = request.n_best * sum(len(text) ** 2 for text in request.texts)
    if request.attention and weights > settings.longest_text**2:
        raise TooLargeError(
            "request: attention: too much text to show it for: send fewer or shorter texts"
        )
    texts = check_texts(request.texts, "request: texts")
    splits = settings.split_sentences and request.split_sentences
    lines = SplitLines(list(enumerate(texts, start=1)), language if splits else None)
    if len(lines.sentences) > settings.most_waiting:
        raise TooLargeError(
            f"request: {len(lines.sentences)} sentences, and {settings.most_waiting} is the most: "
            "send them in several requests"
        )
    results = {"n_best": request.n_best, "attention": request.attention}
    return lines, search.model_dump(exclude=OF_A_MODEL) | results


@dataclass(frozen=True)
class _Job:
    texts: Sequence[str]
    options: RequestOptions
    result: "asyncio.Future[list[Translation]]"  # cancelled if the client has gone


class Batches:
    """The queue of one model, from which waiting requests are translated in batches.

    ``translate`` puts a request into the queue, and ``run`` answers it. Both run in the event loop
    of the server; only the model itself runs in another thread.
    """

    def __init__(
        self,
        translate: Callable[..., list[Translation]],
        most_together: int,
        most_waiting: int,
    ) -> None:
        """Make an empty queue.

        Args:
            translate: `Translator.translate`; one other thread calls it, for one batch at a time.
            most_together: maximum number of sentences in a batch; a request with more sentences is
                a batch of its own.
            most_waiting: maximum number of sentences in the queue.
        """
        self._translate = translate
        self._most_together = most_together
        self._most_waiting = most_waiting
        self._jobs: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        # `asyncio.to_thread` would use several threads in turn.
        self._thread = ThreadPoolExecutor(1, "translate")
        self._seconds_of_last_batch = 0.0

    @property
    def waiting(self) -> int:
        """Number of sentences in the queue, without those that are being translated."""
        return sum(len(job.texts) for job in self._jobs)

    async def translate(
        self, texts: Sequence[str], options: RequestOptions
    ) -> list[Translation]:
        """Put a request into the queue, and return its translations when they are made.

        If this coroutine is cancelled, the request leaves the queue.

        Raises:
            BusyError: too many sentences wait already.
        """
        if self.waiting + len(texts) > self._most_waiting:
            raise BusyError(
                f"the server is busy: {self.waiting} sentences wait, and {self._most_waiting} is "
                "the most: ask again in a moment"
            )
        job = _Job(texts, options, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._arrived.set()
        try:
            return await job.result
        finally:
            if job in self._jobs:
                self._jobs.remove(job)

    async def run(self) -> None:
        """Translate the requests in the queue, batch after batch, until cancelled."""
        with self._thread:
            while True:
                await self._arrived.wait()
                await self._wait_for_more()
                if not self._jobs:
                    self._arrived.clear()
                    continue
                started = time.monotonic()
                await self._answer(self._take())
                self._seconds_of_last_batch = time.monotonic() - started

    async def _wait_for_more(self) -> None:
        """Wait until a lull has passed, the batch is full, or the time is up."""
        lull = max(LULL_SECONDS, LULL_SHARE * self._seconds_of_last_batch)
        most = max(MOST_SECONDS, MOST_SHARE * self._seconds_of_last_batch)
        end = time.monotonic() + most
        waiting_before = 0
        while (
            waiting_before < self.waiting < self._most_together
            and time.monotonic() < end
        ):
            waiting_before = self.waiting
            await asyncio.sleep(lull)

    def _take(self) -> list[_Job]:
        """Remove the requests of the next batch from the queue and return them in their order.

        They are the first request, whatever its size, and all later ones with the same options that
        still fit.
        """
        first = self._jobs.popleft()
        taken = [first]
        room = self._most_together - len(first.texts)
        for job in list(self._jobs):
            if job.options == first.options and len(job.texts) <= room:
                taken.append(job)
                self._jobs.remove(job)
                room -= len(job.texts)
        return taken

    async def _answer(self, jobs: Sequence[_Job]) -> None:
        """Translate requests together and set their results.

        If that fails, translate each request alone, so that only the faulty one fails.
        """
        texts = list(chain.from_iterable(job.texts for job in jobs))
        translate_all = partial(self._translate, texts, **jobs[0].options)
        try:
            translations = await asyncio.get_running_loop().run_in_executor(
                self._thread, translate_all
            )
        except Exception as error:
            for job in jobs:
                if job.result.done():
                    continue
                if len(jobs) > 1:
                    await self._answer([job])
                else:
                    job.result.set_exception(error)
            return
        rest = iter(translations)
        for job in jobs:
            result = list(islice(rest, len(job.texts)))
            if not job.result.done():
                job.result.set_result(result)
