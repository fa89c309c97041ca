"""Which requests are translated together, and what becomes of the others."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from threading import get_ident
from typing import Any

import pytest

from convs2s.decoding.translate import Translation
from convs2s.serving.requests import Batches, BusyError


def run(
    work: Callable[[Batches], Coroutine[Any, Any, None]], most: int = 10
) -> list[str]:
    """Run some requests beside the translating, and return what was translated together.

    A text is a letter, and its translation the capital; "!" is a fault.
    """
    calls: list[str] = []

    def translate(texts: list[str], beam: int) -> list[Translation]:
        calls.append("".join(texts))
        if "!" in texts:
            raise ValueError("a fault")
        return [
            Translation(
                1, one, [], [], one.upper(), [], "", [], [], 0, [], None, "fp32"
            )
            for one in texts
        ]

    async def both() -> None:
        batches = Batches(translate, most_together=4, most_waiting=most)
        asked = asyncio.create_task(work(batches))
        await asyncio.sleep(0)  # what is asked at once waits already
        running = asyncio.create_task(batches.run())
        await asked
        assert batches.waiting == 0
        running.cancel()

    asyncio.run(both())
    return calls


async def ask(batches: Batches, texts: str, beam: int = 5) -> str:
    found = await batches.translate(list(texts), {"beam": beam})
    return "".join(one.text for one in found)


@pytest.mark.parametrize(
    ("requests", "calls"),
    [
        ([("a", 5), ("b", 5), ("c", 5), ("d", 5), ("e", 5)], ["abcd", "e"]),
        ([("a", 5), ("b", 1), ("c", 5)], ["ac", "b"]),  # another search
        ([("a", 5), ("bcde", 5), ("fghij", 5)], ["a", "bcde", "fghij"]),  # never cut
        ([("a", 5), ("!", 5), ("b", 5)], ["a!b", "a", "!", "b"]),  # fails alone
    ],
)
def test_what_is_asked_together_is_translated_together(
    requests: list[tuple[str, int]], calls: list[str]
) -> None:
    async def work(batches: Batches) -> None:
        asked = [ask(batches, *request) for request in requests]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for (texts, _), answer in zip(requests, answers, strict=True):
            if texts == "!":
                assert isinstance(answer, ValueError)
            else:
                assert answer == texts.upper()

    assert run(work) == calls


def test_one_thread_translates_all_batches() -> None:
    threads: list[int] = []

    def translate(texts: list[str]) -> list[Any]:
        threads.append(get_ident())
        # Some work, in which a pool of several threads would start the others.
        sum(range(200_000))
        return list(texts)

    async def work() -> None:
        batches = Batches(translate, most_together=1, most_waiting=1000)
        running = asyncio.create_task(batches.run())
        await asyncio.gather(*(batches.translate(["a"], {}) for _ in range(300)))
        running.cancel()

    asyncio.run(work())
    assert len(threads) == 300
    assert len(set(threads)) == 1
    assert get_ident() not in threads


def test_more_than_may_wait_is_refused_at_once() -> None:
    async def work(batches: Batches) -> None:
        waiting = [asyncio.create_task(ask(batches, "abc")) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="6 sentences wait, and 8 is the most"):
            await ask(batches, "abc")
        assert batches.waiting == 6
        await asyncio.gather(*waiting)

    assert run(work, most=8) == ["abc", "abc"]


@pytest.mark.parametrize(
    ("is_in_work", "calls"), [(False, ["!b", "!", "b"]), (True, ["a!b", "!", "b"])]
)
def test_who_leaves_is_not_translated(is_in_work: bool, calls: list[str]) -> None:
    async def work(batches: Batches) -> None:
        leaves, fails, stays = (asyncio.create_task(ask(batches, one)) for one in "a!b")
        await asyncio.sleep(0)
        while is_in_work and batches.waiting:
            await asyncio.sleep(0)
        leaves.cancel()
        assert await stays == "B"
        with suppress(ValueError):
            await fails

    assert run(work) == calls
