"""What updates and searches ask of a GPU, counted without one: budgets hold."""

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.training.schedule import Moment
from tests.contract.fake_cuda import Figures, build_hooks, counted
from tests.support import tiny

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("g++") is None,
        reason="fake CUDA tensors have a backward pass by a library that is compiled for Linux",
    ),
    pytest.mark.skipif(
        torch.backends.cuda.is_built(),
        reason="a build of torch for CUDA asks its driver, also of fake tensors",
    ),
]

CASES: dict[str, dict[str, Any]] = {
    "paper": {"model": "wmt14_en_fr", "tokens": 6400, "workers": 8},
    "bf16": {"model": "small", "tokens": 8000, "limit": 4000, "decodes": True},
    "fp32": {
        "model": "small",
        "tokens": 8000,
        "limit": 2000,
        "precision": "fp32",
        "optimizer": "adam",
    },
}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figures]:
    hooks = build_hooks(tmp_path_factory.mktemp("hooks"))
    return dict(zip(CASES, counted(hooks, list(CASES.values())), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_an_update_waits_for_nothing_and_copies_its_batch_alone(
    figures: dict[str, Figures], case: str
) -> None:
    found = figures[case]
    assert found["waits"] == []
    # Of each micro-batch, source, previous and target.
    assert found["uploads"] == 3 * found["micro_batches"]


def test_a_search_waits_once_a_step(figures: dict[str, Figures]) -> None:
    # Of the most tokens, five words and two, and of </s>.
    assert figures["bf16"]["search_waits"] == ["cpu"] * (5 + 2 + 1)


def test_launches_of_an_update_are_within_budget(figures: dict[str, Figures]) -> None:
    # What is recorded, and what is launched when that is replayed: also the sums of eight workers.
    assert figures["paper"]["launches"] <= 2000
    assert figures["paper"]["outside"] <= 60
    assert figures["bf16"]["outside"] <= 20


def test_a_batch_that_fits_is_computed_at_once_unless_the_recipe_states_less(
    figures: dict[str, Figures],
) -> None:
    """A GPU of 80 GB, as the fake one is, computes more than the default of 4000 tokens."""
    assert figures["bf16"]["micro_batches"] == 1
    assert figures["fp32"]["micro_batches"] == 4


def test_a_compiled_network_is_one_graph(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A break in it is an error, and a batch of other lengths compiles nothing anew."""
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _: object) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    compiled = partial(torch.compile, backend=backend, fullgraph=True)
    monkeypatch.setattr(torch, "compile", compiled)
    one = tiny.trainer(task, tmp_path, compile=True)
    for first in (0, 16):
        loaded = one.updater.load(one.train, np.arange(first, first + 16))
        one.updater.start(loaded, Moment(1, 0, 0.1))
    assert len(graphs) == 1
