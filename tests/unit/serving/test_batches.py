"""Which requests are translated together, and what becomes of the others."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from convs2s.decoding.translate import Translation
from convs2s.serving.requests import Batches, BusyError, RequestOptions

PLAIN = {"beam": 5, "attention": False}


def translated(text: str) -> Translation:
    return Translation(
        1, text, [], [], text.upper(), [], "", [], [], 0.0, [], None, "fp32"
    )


class Recorder:
    """Translates to capitals, and notes what it was given together."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(
        self, texts: list[str], beam: int, attention: bool
    ) -> list[Translation]:
        self.calls.append(texts)
        if "fault" in texts:
            raise ValueError("a fault")
        return [translated(text) for text in texts]


def run(
    work: Callable[[Batches], Coroutine[Any, Any, None]], most: int = 8
) -> Recorder:
    """Run some requests beside the translating, and return what was translated together."""
    recorder = Recorder()

    async def both() -> None:
        batches = Batches(recorder, most_together=4, most_waiting=most)
        asked = asyncio.create_task(work(batches))
        await asyncio.sleep(0)  # what is asked at once waits already
        running = asyncio.create_task(batches.run())
        await asked
        assert batches.waiting == 0
        running.cancel()

    asyncio.run(both())
    return recorder


async def ask(
    batches: Batches, *texts: str, options: RequestOptions = PLAIN
) -> list[str]:
    return [one.text for one in await batches.translate(texts, options)]


def test_what_is_asked_together_is_translated_together() -> None:
    async def work(batches: Batches) -> None:
        answers = await asyncio.gather(*(ask(batches, one) for one in "abcde"))
        assert answers == [["A"], ["B"], ["C"], ["D"], ["E"]]
        assert await ask(batches, "f", "g") == ["F", "G"]

    assert run(work).calls == [["a", "b", "c", "d"], ["e"], ["f", "g"]]


def test_what_wants_another_search_is_not_translated_with_it() -> None:
    async def work(batches: Batches) -> None:
        other = {**PLAIN, "beam": 1}
        asked = ask(batches, "a"), ask(batches, "b", options=other), ask(batches, "c")
        assert list(await asyncio.gather(*asked)) == [["A"], ["B"], ["C"]]

    assert run(work).calls == [["a", "c"], ["b"]]


def test_a_request_is_never_cut() -> None:
    async def work(batches: Batches) -> None:
        asked = ask(batches, "a"), ask(batches, *"bcde"), ask(batches, *"fghij")
        assert list(await asyncio.gather(*asked)) == [["A"], [*"BCDE"], [*"FGHIJ"]]

    assert run(work, most=10).calls == [["a"], [*"bcde"], [*"fghij"]]


def test_more_than_may_wait_is_refused_at_once() -> None:
    async def work(batches: Batches) -> None:
        waiting = [asyncio.create_task(ask(batches, *"abc")) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="6 sentences wait, and 8 is the most"):
            await ask(batches, *"abc")
        assert batches.waiting == 6
        await asyncio.gather(*waiting)

    assert len(run(work).calls) == 2


def test_who_leaves_is_not_translated() -> None:
    async def work(batches: Batches) -> None:
        leaves, stays = (asyncio.create_task(ask(batches, one)) for one in "ab")
        await asyncio.sleep(0)
        leaves.cancel()
        assert await stays == ["B"]

    assert run(work).calls == [["b"]]


def test_a_request_that_fails_fails_alone() -> None:
    async def work(batches: Batches) -> None:
        asked = [ask(batches, one) for one in ("a", "fault", "b")]
        first, second, third = await asyncio.gather(*asked, return_exceptions=True)
        assert (first, third) == (["A"], ["B"])
        assert isinstance(second, ValueError)

    assert run(work).calls == [["a", "fault", "b"], ["a"], ["fault"], ["b"]]


def test_who_has_left_a_batch_that_fails_is_not_translated_again() -> None:
    async def work(batches: Batches) -> None:
        asked = [asyncio.create_task(ask(batches, one)) for one in ("a", "fault", "b")]
        await asyncio.sleep(0)
        while batches.waiting:
            await asyncio.sleep(0)
        asked[0].cancel()
        assert await asked[2] == ["B"]
        with pytest.raises(ValueError, match="a fault"):
            await asked[1]

    assert run(work).calls == [["a", "fault", "b"], ["fault"], ["b"]]
