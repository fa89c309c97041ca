"""Batches and chunks side by side: their order, threads, processes, failures and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from threading import Event, get_ident

import pytest
import torch

from convs2s.decoding.parallel import (
    Chunk,
    search_in_threads,
    sentences_per_batch,
    translate_chunks,
)
from convs2s.errors import UserError


def test_results_come_in_order_from_threads_that_compute_alone() -> None:
    def search(number: int, _: Event) -> tuple[int, int, int]:
        time.sleep(0.01)
        return number, torch.get_num_threads(), get_ident()

    found = search_in_threads(search, range(8), threads=3)
    assert [number for number, _, _ in found] == list(range(8))
    assert {threads for _, threads, _ in found} == {1}
    assert 1 < len({thread for _, _, thread in found}) <= 3


def test_a_single_batch_needs_no_thread() -> None:
    found = search_in_threads(
        lambda *_: (torch.get_num_threads(), get_ident()), [0], threads=4
    )
    assert found == [(1, get_ident())]


def test_the_program_has_its_threads_again() -> None:
    """After a single batch and after two, for itself and for threads that it starts."""
    program = """
import threading, torch
from convs2s.decoding.parallel import search_in_threads
torch.set_num_threads(2)
for batches in (1, 2):
    search_in_threads(lambda *_: None, range(batches), 2)
    print(torch.get_num_threads())
    other = threading.Thread(target=lambda: print(torch.get_num_threads()))
    other.start()
    other.join()
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert run.stdout.split() == ["2"] * 4, run.stderr


def test_a_failure_stops_the_other_batches() -> None:
    begun, ended = Event(), []

    def search(number: int, stopped: Event) -> None:
        if number == 1:
            begun.wait(60)
            raise KeyError(number)
        begun.set()
        ended.append(stopped.wait(60))

    with pytest.raises(KeyError):
        search_in_threads(search, range(2), threads=2)
    assert ended == [True]


@pytest.mark.parametrize(
    ("count", "threads", "expected"),
    [
        (1000, 2, 64),
        (100, 2, 50),
        (101, 2, 51),
        (20, 2, 10),
        (3, 2, 8),
        (0, 2, 8),
        (100, 1, 64),
    ],
)
def test_few_sentences_are_shared_out(count: int, threads: int, expected: int) -> None:
    assert sentences_per_batch(count, threads, 64) == expected


def test_no_batch_is_larger_than_asked_for() -> None:
    assert sentences_per_batch(100, 2, 4) == 4


@pytest.mark.parametrize("later", [0, 1], ids=["waiting for it", "with chunks left"])
def test_a_killed_worker_ends_those_that_have_nothing_to_do(later: int) -> None:
    def chunks() -> Iterator[Chunk]:
        yield [(0, "")]
        time.sleep(0.2 * later)  # until the pool has learned of it
        yield from [[(1, "")]] * later

    def die(_: Chunk) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    with pytest.raises(UserError, match="a worker was killed"):
        list(translate_chunks(die, chunks(), 3))
