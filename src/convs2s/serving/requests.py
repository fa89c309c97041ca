"""From the bytes of a request to its translations: bounds, a queue, and batches of what fits.

One thread translates together what can go together.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from convs2s.api.translator import OF_A_MODEL, check_texts
from convs2s.config.decoding import DecodingSettings
from convs2s.config.messages import validated
from convs2s.config.section import PositiveInt, Section
from convs2s.decoding.split_lines import SplitLines
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError, failures_of_file
from convs2s.serving.settings import ServerSettings

DRAINED_BYTES = 16 << 20
"""Bytes of an overlong request that are read and dropped, so that its client hears the answer."""

LULL_SECONDS = 0.005
LULL_SHARE = 0.02
"""A batch begins once no request has come for so long, or for this share of the time that the one
before took, if that is more: clients that were answered together ask again together."""

MOST_SECONDS = 0.05
MOST_SHARE = 0.1
"""A batch begins after so long, or this share of that time, in any case."""


class RefusedError(UserError):
    """A request that is not answered, with the ``status`` of HTTP that says so."""

    status: int


class TooLargeError(RefusedError):
    """A request has more than the server takes."""

    status = 413


class BusyError(RefusedError):
    """More sentences wait than the server takes: the client may ask again later."""

    status = 503


class _Request(Section):
    texts: list[str]  # raw texts, each on one line
    beam: PositiveInt  # hypotheses kept at each step
    n_best: PositiveInt = 1  # how many of the best hypotheses each translation has
    attention: bool = False  # whether each translation has its attention
    split_sentences: bool = True  # whether each sentence is translated by itself


RequestOptions = Mapping[str, object]
"""What a request wants of each translation, as `Translator.translate` has it; requests that want
the same share batches."""


def check_search(search: DecodingSettings, settings: ServerSettings) -> None:
    """Check that a request which states nothing is within the bounds."""
    if search.beam > settings.largest_beam:
        raise UserError(
            f"--beam {search.beam}: --largest-beam is {settings.largest_beam}: raise that"
        )
    if settings.most_texts > settings.most_waiting:
        raise UserError(
            f"--most-texts {settings.most_texts}: --most-waiting is {settings.most_waiting}: raise "
            "that, or a request of so many sentences would never be taken"
        )


async def read_body(parts: AsyncIterator[bytes], most: int) -> bytes:
    """Return the body of a request; one of more than ``most`` bytes is read, within reason."""
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
            "sentences at a time, or use: convs2s translate --input FILE"
        )
    return bytes(body)


def read_json(body: bytes) -> dict[str, object]:
    """Return the object that a body in JSON is.

    Raises:
        UserError: it is no object, no JSON, or not UTF-8.
    """
    with failures_of_file("request", 'not JSON in UTF-8, such as {"texts": ["..."]}'):
        stated = json.loads(body.decode())
    if not isinstance(stated, dict):
        raise UserError('request: expected a JSON object: send {"texts": ["..."]}')
    return stated


def check_request(
    stated: Mapping[str, object],
    settings: ServerSettings,
    search: DecodingSettings,
    language: str,
) -> tuple[SplitLines, RequestOptions]:
    """Return what a request asks, searched by ``search`` where it does not say otherwise.

    Its texts in a language are split into sentences where that is wanted.

    Raises:
        TooLargeError: it has a text too many, or too long.
        UserError: it has unknown keys, or values out of bounds.
    """
    request = validated(_Request, {"beam": search.beam, **stated}, "request")
    if request.beam > settings.largest_beam:
        raise UserError(f"request: beam: expected at most {settings.largest_beam}")
    search = search.model_copy(update={"beam": request.beam})
    search.check_n_best(request.n_best, "request: n_best")
    if len(request.texts) > settings.most_texts:
        raise TooLargeError(
            f"request: {len(request.texts)} texts, and {settings.most_texts} is the most: send "
            "them in several requests"
        )
    # Half a surrogate pair counts here, and is refused below.
    longest = max((len(text.encode(errors="surrogatepass")) for text in request.texts), default=0)
    if longest > settings.longest_text:
        raise TooLargeError(
            f"request: a text of {longest:,} bytes, and {settings.longest_text:,} is the most: "
            "send one sentence at a time"
        )
    # A weight for each target and source token: some 40 MB of a layer for a longest text.
    weights = request.n_best * sum(len(text) ** 2 for text in request.texts)
    if request.attention and weights > settings.longest_text**2:
        raise TooLargeError("request: attention of so much text: send fewer or shorter texts")
    texts = check_texts(request.texts, "request: texts")
    splits = settings.split_sentences and request.split_sentences
    lines = SplitLines(list(enumerate(texts, start=1)), language if splits else None)
    if len(lines.sentences) > settings.most_waiting:
        raise TooLargeError(
            f"request: {len(lines.sentences)} sentences, and {settings.most_waiting} is the most: "
            "send them in several requests"
        )
    wanted = {"n_best": request.n_best, "attention": request.attention}
    return lines, search.model_dump(exclude=OF_A_MODEL) | wanted


@dataclass(frozen=True)
class _Job:
    texts: Sequence[str]
    options: RequestOptions
    result: "asyncio.Future[list[Translation]]"  # done already where the client has gone


class Batches:
    """The queue of one model; all but the translating happens in the server's own thread."""

    def __init__(
        self,
        translate: Callable[..., list[Translation]],
        most_together: int,
        most_waiting: int,
    ) -> None:
        """Start empty; ``run`` translates, in a thread of its own.

        A batch has ``most_together`` sentences at most, unless one request has more.
        """
        self._translate = translate
        self._most_together = most_together
        self._most_waiting = most_waiting
        self._jobs: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._took = 0.0  # seconds that the last batch took

    @property
    def waiting(self) -> int:
        """How many sentences wait; those that are being translated do not count."""
        return sum(len(job.texts) for job in self._jobs)

    async def translate(
        self,
        texts: Sequence[str],
        options: RequestOptions,
    ) -> list[Translation]:
        """Wait for the translations of a request; cancelled, it gives up its place.

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
        """Translate what arrives until cancelled."""
        with ThreadPoolExecutor(1, "translate") as pool:
            while True:
                await self._arrived.wait()
                await self._wait_for_more()
                jobs = self._take()
                if not self._jobs:
                    self._arrived.clear()
                started = time.monotonic()
                await self._answer(pool, jobs)
                self._took = time.monotonic() - started

    async def _wait_for_more(self) -> None:
        """Wait for as long as requests keep coming and fit into the batch, but not for long."""
        lull = max(LULL_SECONDS, LULL_SHARE * self._took)
        end = time.monotonic() + max(MOST_SECONDS, MOST_SHARE * self._took)
        before = 0
        while before < self.waiting < self._most_together and time.monotonic() < end:
            before = self.waiting
            await asyncio.sleep(lull)

    def _take(self) -> list[_Job]:
        """Take the first request, and the others that want the same and fit, in their order."""
        taken: list[_Job] = []
        room = self._most_together
        for job in list(self._jobs):
            if not taken or (job.options == taken[0].options and len(job.texts) <= room):
                taken.append(job)
                self._jobs.remove(job)
                room -= len(job.texts)
        return taken

    async def _answer(
        self,
        pool: ThreadPoolExecutor,
        jobs: Sequence[_Job],
    ) -> None:
        """Translate requests together; where that fails, each alone, so that one fails alone."""
        if not jobs:
            return
        texts = [text for job in jobs for text in job.texts]
        translating = asyncio.get_running_loop().run_in_executor(
            pool, partial(self._translate, texts, **jobs[0].options)
        )
        try:
            translations = iter(await translating)
        except Exception as error:
            for job in jobs:
                if job.result.done():
                    continue
                if len(jobs) > 1:
                    await self._answer(pool, [job])
                else:
                    job.result.set_exception(error)
            return
        for job in jobs:
            result = [next(translations) for _ in job.texts]
            if not job.result.done():
                job.result.set_result(result)
