"""An epoch's plan: what a plain implementation gives, in little memory, however many pairs."""

import itertools
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from convs2s.config.model import BatchLimits
from convs2s.data import batches
from convs2s.data.batches import Rows, plan_batches
from convs2s.data.store import ROWS_PER_BATCH, TokenStore, write_store
from convs2s.data.vocabulary import END

PAIRS = 20_000


def synthetic_lengths(
    pairs: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    generator = np.random.default_rng(0)
    source = np.clip(generator.gamma(3.5, 7.5, pairs), 1, 300)
    target = np.clip(source * generator.normal(1.1, 0.15, pairs), 1, 300)
    return source.astype(np.int32), target.astype(np.int32)


SOURCE, TARGET = synthetic_lengths(PAIRS)
LONGEST = np.maximum(SOURCE, TARGET).tolist()


def limited(
    sentences: int | None,
    tokens: int | None,
    micro_batch_tokens: int | None,
    **others: Any,
) -> BatchLimits:
    return BatchLimits(
        sentences=sentences,
        tokens=tokens,
        micro_batch_tokens=micro_batch_tokens,
        **others,
    )


def plan(limits: BatchLimits) -> list[Rows]:
    return plan_batches(SOURCE, TARGET, limits, np.random.default_rng([1, 2]))


# ---- the plain implementation ----


def plain_cut(
    rows: list[int], sentences: int | None, tokens: int | None
) -> list[list[int]]:
    """Row by row: a run takes the next row unless that breaks a limit."""
    runs: list[list[int]] = []
    widest = 0
    for row in rows:
        grown = max(widest, LONGEST[row])
        size = len(runs[-1]) + 1 if runs else 0
        full = sentences is not None and size > sentences
        wide = tokens is not None and size * grown > tokens
        if not runs or full or wide:
            runs.append([])
            grown = LONGEST[row]
        runs[-1].append(row)
        widest = grown
    return runs


def plain_plan(limits: BatchLimits) -> list[list[int]]:
    generator = np.random.default_rng([1, 2])
    keys = list(zip(SOURCE.tolist(), TARGET.tolist(), strict=True))
    rows = generator.permutation(PAIRS).tolist()
    if limits.lengths != "mixed":
        rows.sort(key=keys.__getitem__)
    batches = plain_cut(rows, limits.sentences, limits.tokens)
    shuffled = [batches[index] for index in generator.permutation(len(batches))]
    if limits.split == "accumulate":
        return shuffled
    parts = (plain_cut(batch, None, limits.micro_batch_tokens) for batch in shuffled)
    return list(itertools.chain.from_iterable(parts))


# ---- plans ----


@pytest.mark.parametrize(
    "limits",
    [
        limited(64, None, 4000),
        limited(None, 4000, None),
        limited(64, 1500, None),
        limited(None, 100, None),  # some rows alone are over it
        limited(None, None, None),
        limited(512, None, 4000, split="separate"),
        limited(64, None, None, lengths="mixed"),
        limited(None, 4000, None, lengths="mixed"),
    ],
)
def test_a_plan_is_that_of_the_plain_implementation(limits: BatchLimits) -> None:
    found = [rows.tolist() for rows in plan(limits)]
    assert found == plain_plan(limits)


def test_the_chunks_of_the_sort_do_not_change_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = limited(64, None, None)
    whole = np.concatenate(list(plan(limits)))
    monkeypatch.setattr(batches, "SORT_CHUNK", 1009)
    np.testing.assert_array_equal(whole, np.concatenate(list(plan(limits))))


def test_batches_of_mixed_lengths_have_more_padding() -> None:
    longest = np.array(LONGEST)

    def padded(limits: BatchLimits) -> int:
        return sum(len(rows) * int(longest[rows].max()) for rows in plan(limits))

    alike, mixed = (
        padded(limited(128, None, None)),
        padded(limited(128, None, None, lengths="mixed")),
    )
    assert mixed > 1.5 * alike


def test_an_empty_store_makes_an_empty_plan() -> None:
    nothing = np.zeros(0, np.int32)
    for tokens in ((None, None), (4000, 1000)):
        limits = limited(64, *tokens, split="separate")
        generator = np.random.default_rng(1)
        assert len(plan_batches(nothing, nothing, limits, generator)) == 0


@pytest.mark.parametrize("limits", [limited(64, None, None), limited(None, 4000, None)])
def test_planning_takes_a_few_bytes_a_pair(
    limits: BatchLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = 200_000  # beside which the fixed costs are small
    monkeypatch.setattr(batches, "SORT_CHUNK", pairs // 50)
    source, target = (lengths.astype(np.uint16) for lengths in synthetic_lengths(pairs))
    tracemalloc.start()
    made = plan_batches(source, target, limits, np.random.default_rng(1))
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(made) > 0
    assert held < 7 * pairs  # the order, 4 bytes, and the batches
    assert peak < 11 * pairs  # the order, the longer sides twice, and the batches


# ---- lengths ----


def test_lengths_have_the_smallest_type_that_holds_them(tmp_path: Path) -> None:
    path = tmp_path / "train.arrow"
    long = ([3] * 299 + [END], [3] * 254 + [END])
    write_store(
        path, itertools.chain(itertools.repeat(([END], [END]), ROWS_PER_BATCH), [long])
    )
    store = TokenStore(path)
    for side, length, kind in (("source", 300, np.uint16), ("target", 255, np.uint8)):
        lengths = store.lengths(side)
        assert lengths.dtype == kind
        assert lengths.tolist() == [1] * ROWS_PER_BATCH + [length]


# ---- the largest store ----


@pytest.mark.slow
def test_36_million_pairs_start_in_flat_memory(root: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(root / "benchmarks" / "store.py"),
        "--folder",
        str(tmp_path),
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(finished.stdout.splitlines()[-1])
    assert figures["pairs"] == 36_000_000
    assert figures["peak_mebibytes"] < 700e6 / 2**20
    assert figures["growth"] < 0.05
