"""Which sentences are translated together, in which order, and what becomes of the others."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from threading import Event, get_ident
from types import SimpleNamespace
from typing import Any

import pytest

from convs2s.decoding.parallel import StoppedError
from convs2s.serving.batches import WORK_PER_SENTENCE, Batches
from convs2s.serving.requests import BusyError, Sentence
from tests.support.refusals import rows

TOGETHER = 4


def run(
    work: Callable[[Batches], Coroutine[Any, Any, None]],
    most: int = 10,
    clients: int = 100,
) -> list[str]:
    """Run some requests beside the translating, and return what was translated together.

    A text is a letter, and its translation the capital; "!" is a fault, "~" takes until it is
    stopped, and "#" until all is over.
    """
    calls: list[str] = []
    threads: set[int] = set()
    over = Event()

    def translate(
        sentences: list[tuple[str, list[str]]], stopped: Event, beam: int
    ) -> Any:
        texts = "".join(text for text, _ in sentences)
        calls.append(texts)
        threads.add(get_ident())
        if "!" in texts:
            raise ValueError("a fault")
        if "~" in texts:
            if not stopped.wait(10):
                calls.append("waited for")
            raise StoppedError
        if "#" in texts and not over.wait(10):
            calls.append("waited for")
        return [SimpleNamespace(text=text.upper()) for text in texts]

    async def both() -> None:
        batches = Batches(translate, TOGETHER, most, lambda: clients)
        asked = asyncio.create_task(work(batches))
        await asyncio.sleep(0)  # what is asked at once waits already
        running = asyncio.create_task(batches.run())
        await asked
        assert batches.waiting == 0
        running.cancel()

    asyncio.run(both())
    over.set()
    assert len(threads) == 1
    return calls


async def ask(batches: Batches, texts: str, beam: int = 5, tokens: int = 3) -> str:
    sentences = [Sentence(text, ["w"] * tokens, tokens * beam) for text in texts]
    found = await batches.translate(sentences, {"beam": beam})
    return "".join(one.text for one in found)


# Requests, each with its beam, and what of them is translated together.
REQUESTS = """
a5 b5 c5 d5 e5 => abcd e
a5 b6 c5 => ac b
a5 bcde5 fghij5 => abcd efgh ij
abcdefgh5 x5 y5 => xyab cdef gh
abcdef5 x1 yz2 => x yz abcd ef
a5 !5 b5 => a!b a ! b
"""


@pytest.mark.parametrize(("requests", "calls"), rows(REQUESTS))
def test_what_is_asked_together_is_translated_together(
    requests: str, calls: str
) -> None:
    """Of one search. A large request does not hold up small ones, and a fault fails alone."""

    async def work(batches: Batches) -> None:
        stated = requests.split()
        asked = [ask(batches, one[:-1], beam=int(one[-1])) for one in stated]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for one, answer in zip(stated, answers, strict=True):
            if one == "!5":
                assert isinstance(answer, ValueError)
            else:
                assert answer == one[:-1].upper()

    assert run(work) == calls.split()


def test_of_too_many_the_largest_is_refused() -> None:
    async def work(batches: Batches) -> None:
        large, middle, small = (
            asyncio.create_task(ask(batches, texts)) for texts in ("abcde", "fgh", "x")
        )
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await ask(batches, "vwxyzvwxyz")  # none is larger
        with pytest.raises(BusyError, match="8 sentences wait, at most 8 may"):
            await large
        assert (await middle, await small) == ("FGH", "X")

    assert run(work, most=8) == ["xfgh"]


def test_a_batch_of_long_sentences_has_fewer() -> None:
    tokens = TOGETHER * WORK_PER_SENTENCE // 5 // 2  # two make a batch

    async def work(batches: Batches) -> None:
        asked = [
            ask(batches, "abc", tokens=tokens),
            ask(batches, "x", tokens=10 * tokens),  # never smaller than one sentence
            ask(batches, "y"),
        ]
        assert await asyncio.gather(*asked) == ["ABC", "X", "Y"]

    assert run(work) == ["ya", "x", "bc"]


def test_a_large_request_is_not_put_off_for_ever() -> None:
    """Small requests that never end share the model with it.

    Of so many batches a pool of several threads would take some in another thread.
    """

    async def work(batches: Batches) -> None:
        large = asyncio.create_task(ask(batches, "abcdefghij", beam=5))
        small = 0
        while not large.done():
            await asyncio.gather(*(ask(batches, "x", beam=1) for _ in range(8)))
            small += 8
        assert 8 <= small <= 400

    run(work, most=100)


@pytest.mark.parametrize(("clients", "texts"), [(1, "a"), (2, "ab"), (0, "a")])
def test_who_cannot_get_company_does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch, clients: int, texts: str
) -> None:
    """All clients that are connected have asked. A lull would take an hour."""
    monkeypatch.setattr("convs2s.serving.batches.LULL_SECONDS", 3600.0)
    monkeypatch.setattr("convs2s.serving.batches.MOST_SECONDS", 3600.0)

    async def work(batches: Batches) -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(*(ask(batches, text) for text in texts))

    assert run(work, clients=clients) == [texts]


def test_who_may_get_company_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convs2s.serving.batches.LULL_SECONDS", 0.3)

    async def work(batches: Batches) -> None:
        first = asyncio.create_task(ask(batches, "a"))
        await asyncio.sleep(0.01)
        await asyncio.gather(first, ask(batches, "b"))

    assert run(work, clients=2) == ["ab"]


@pytest.mark.parametrize(
    ("texts", "leaves"), [("a~", True), ("a~", False), ("a#", False)]
)
def test_a_batch_that_nobody_waits_for_is_stopped(texts: str, leaves: bool) -> None:
    """All of its clients have left, or the server stops, which waits for no batch."""

    async def work(batches: Batches) -> None:
        asked = [asyncio.create_task(ask(batches, one)) for one in texts]
        await asyncio.sleep(0)
        while batches.waiting:
            await asyncio.sleep(0)
        if leaves:
            for one in asked:
                one.cancel()
            assert await ask(batches, "b") == "B"

    assert run(work) == ([texts, "b"] if leaves else [texts])


LEAVES = """
waiting => !b ! b
in work => a!b ! b
"""


@pytest.mark.parametrize(("found", "calls"), rows(LEAVES))
def test_who_leaves_is_not_translated(found: str, calls: str) -> None:
    async def work(batches: Batches) -> None:
        leaves, fails, stays = (asyncio.create_task(ask(batches, one)) for one in "a!b")
        await asyncio.sleep(0)
        while found == "in work" and batches.waiting:
            await asyncio.sleep(0)
        leaves.cancel()
        assert await stays == "B"
        with suppress(ValueError):
            await fails

    assert run(work) == calls.split()
