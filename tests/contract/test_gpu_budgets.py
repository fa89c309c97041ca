"""What updates, validations and searches ask of a GPU, counted without one: budgets hold."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.contract.fake_cuda import Figures, build_hooks, counted

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

CASES: dict[str, dict[str, Any]] = yaml.safe_load("""
bf16: {model: wmt14_en_fr, tokens: 6400, workers: 8}
fp32: {model: wmt14_en_fr, precision: fp32, tokens: 16000}
adam: {model: small, optimizer: adam}
# A batch of the most tokens that a GPU of 80 GB, as the fake one is, computes at a time.
default: &full
  model: wmt14_en_fr
  blocks: [{layers: 2, width: 512, kernel: 3}, {layers: 1, width: 4096, kernel: 1}]
  tokens: 32000
  limit: 4000
stated: {<<: *full, limit: 8000}
""")


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_hooks(tmp_path_factory.mktemp("hooks"))


@pytest.fixture(scope="module")
def figures(hooks: Path) -> dict[str, Figures]:
    return dict(zip(CASES, counted(hooks, list(CASES.values())), strict=True))


def test_an_update_waits_for_nothing_and_all_that_it_changes_is_fp32_on_the_gpu(
    figures: dict[str, Figures],
) -> None:
    for case in ("bf16", "fp32", "adam"):
        found = figures[case]
        assert found["waits"] == []
        assert found["uploads"] == 3  # source, previous and target
        assert found["validation_waits"] == ["tolist"]
        # Each step, once: of the most tokens, five words and two, and of </s>.
        assert found["search_waits"] == ["cpu"] * (5 + 2 + 1)
        for name in ("parameters", "gradients", "states"):
            assert found[name] == ["cuda:0 torch.float32"], name
        assert found["loss"] == ["cuda:0", "torch.float64"]


def test_launches_and_memory_of_an_update_are_within_budget(
    figures: dict[str, Figures],
) -> None:
    """A batch that fits is computed at once, unless the recipe states less."""
    # What is recorded, and what is launched when that is replayed: with the sums of eight workers.
    assert figures["bf16"]["launches"] <= 2000
    assert figures["bf16"]["outside"] <= 60
    assert all(figures[case]["outside"] <= 20 for case in ("fp32", "adam"))
    # A micro-batch of 16,000 tokens fits a GPU of today.
    assert figures["fp32"]["logits_bytes"] < 1e9
    assert figures["fp32"]["peak_bytes"] < 17e9
    default, stated = figures["default"], figures["stated"]
    assert default["micro_batches"] == 1
    assert stated["micro_batches"] == 4
    assert default["outside"] <= 0.5 * stated["outside"]


@pytest.mark.slow
def test_a_micro_batch_in_bf16_fits_a_smaller_gpu(hooks: Path) -> None:
    (found,) = counted(hooks, [{"model": "wmt14_en_fr", "tokens": 16_000}])
    assert found["waits"] == []
    assert found["logits_bytes"] < 1e9
    assert found["peak_bytes"] < 10e9


@pytest.mark.slow
def test_a_compiled_update_launches_a_third_in_one_graph_each_way(
    figures: dict[str, Figures], hooks: Path
) -> None:
    (compiled,) = counted(hooks, [{**CASES["bf16"], "compile": True}])
    # One graph each way, and one of the loss: nothing is compiled again.
    forward, backward, _ = compiled["kernels"]
    eager = figures["bf16"]["launches"]
    assert forward + backward <= 0.3 * eager
    assert 3 * compiled["launches"] <= eager
