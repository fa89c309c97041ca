"""Batches side by side: their order, threads and failures."""

import time
from threading import Event, Thread, get_ident

import pytest
import torch

from convs2s.decoding.parallel import search_in_threads, sentences_per_batch


def test_results_come_in_order_from_threads_that_compute_alone() -> None:
    """Then the program has its threads again, for itself and for threads that it starts."""

    def search(number: int, _: Event) -> tuple[int, int, int]:
        time.sleep(0.01)
        return number, torch.get_num_threads(), get_ident()

    torch.set_num_threads(2)
    found = list(search_in_threads(search, range(8), threads=3))
    assert [number for number, _, _ in found] == list(range(8))
    (alone,) = search_in_threads(search, [8], threads=3)
    assert {threads for _, threads, _ in [*found, alone]} == {1}
    assert 2 <= len({thread for _, _, thread in found}) <= 3
    seen = [torch.get_num_threads()]
    other = Thread(target=lambda: seen.append(torch.get_num_threads()))
    other.start()
    other.join()
    assert seen == [2, 2]


def test_a_failure_stops_the_other_batches() -> None:
    begun = Event()
    ended = []

    def search(number: int, stopped: Event) -> None:
        if number == 1:
            begun.wait(60)
            raise KeyError(number)
        begun.set()
        ended.append(stopped.wait(60))

    with pytest.raises(KeyError):
        search_in_threads(search, range(2), threads=2)
    assert ended == [True]


def test_few_sentences_are_shared_out() -> None:
    found = [sentences_per_batch(count, 2, 64) for count in (1000, 101, 3)]
    assert found == [64, 51, 8]
    assert sentences_per_batch(100, 2, 4) == 4
