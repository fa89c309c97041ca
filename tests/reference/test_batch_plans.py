"""An epoch's plan: what a plain implementation gives, in little memory, however many pairs."""

import itertools
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from convs2s.config.model import BatchLimits
from convs2s.data import batches
from convs2s.data.batches import plan_batches

PAIRS = 20_000


def lengths(pairs: int) -> tuple[Any, Any]:
    """Draw the lengths of sources and targets as real text has them."""
    draw = np.random.default_rng(0)
    source = np.clip(draw.gamma(3.5, 7.5, pairs), 1, 300)
    target = np.clip(source * draw.normal(1.1, 0.15, pairs), 1, 300)
    return source.astype(np.uint16), target.astype(np.uint16)


LIMITS = yaml.safe_load("""
- {sentences: 64, tokens: null, micro_batch_tokens: 4000}
- {sentences: 64, tokens: 1500, micro_batch_tokens: null}
# Some rows alone are over it.
- {sentences: null, tokens: 100, micro_batch_tokens: null}
- {sentences: 512, tokens: null, micro_batch_tokens: 4000, split: separate}
- {sentences: 64, tokens: null, micro_batch_tokens: null, lengths: mixed}
- {sentences: null, tokens: 4000, micro_batch_tokens: null, lengths: mixed}
""")
SOURCE, TARGET = lengths(PAIRS)
LONGEST = np.maximum(SOURCE, TARGET).tolist()


def plain_cut(
    rows: list[int], sentences: int | None, tokens: int | None
) -> list[list[int]]:
    """Row by row: a run takes the next row unless that breaks a limit."""
    runs: list[list[int]] = []
    for row in rows:
        grown = [*runs[-1], row] if runs else []
        widest = max((LONGEST[one] for one in grown), default=0)
        full = sentences is not None and len(grown) > sentences
        wide = tokens is not None and len(grown) * widest > tokens
        if full or wide or not runs:
            runs.append([row])
        else:
            runs[-1].append(row)
    return runs


def plain_plan(limits: BatchLimits) -> list[list[int]]:
    draw = np.random.default_rng([1, 2])
    rows = draw.permutation(PAIRS).tolist()
    if limits.lengths != "mixed":
        rows.sort(key=lambda row: (SOURCE[row], TARGET[row]))
    found = plain_cut(rows, limits.sentences, limits.tokens)
    shuffled = [found[index] for index in draw.permutation(len(found))]
    if limits.split == "accumulate":
        return shuffled
    parts = (plain_cut(batch, None, limits.micro_batch_tokens) for batch in shuffled)
    return list(itertools.chain.from_iterable(parts))


@pytest.mark.parametrize("chunk", [batches.SORT_CHUNK, 1009])
@pytest.mark.parametrize("stated", LIMITS)
def test_a_plan_is_that_of_the_plain_implementation(
    monkeypatch: pytest.MonkeyPatch, stated: dict[str, Any], chunk: int
) -> None:
    monkeypatch.setattr(batches, "SORT_CHUNK", chunk)
    limits = BatchLimits.model_validate(stated)
    plan = plan_batches(SOURCE, TARGET, limits, np.random.default_rng([1, 2]))
    assert [rows.tolist() for rows in plan] == plain_plan(limits)
    nothing = np.zeros(0, np.int32)
    assert plan_batches(nothing, nothing, limits, np.random.default_rng(1)) == []


def test_planning_takes_a_few_bytes_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = 200_000  # beside which the fixed costs are small
    monkeypatch.setattr(batches, "SORT_CHUNK", pairs // 50)
    source, target = lengths(pairs)
    for sentences, tokens in ((64, None), (None, 4000)):
        limits = BatchLimits(
            sentences=sentences, tokens=tokens, micro_batch_tokens=None
        )
        tracemalloc.start()
        plan = plan_batches(source, target, limits, np.random.default_rng(1))
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(plan) > 0
        assert held < 7 * pairs  # the order, 4 bytes, and the batches
        assert peak < 11 * pairs  # the order, the longer sides twice, and the batches


@pytest.mark.slow
def test_36_million_pairs_start_in_flat_memory(root: Path, tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, root / "benchmarks/store.py", "--folder", tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(finished.stdout.splitlines()[-1])
    assert figures["pairs"] == 36_000_000
    assert figures["peak_mebibytes"] < 700e6 / 2**20
    assert figures["growth"] < 0.05
