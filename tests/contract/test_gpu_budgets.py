"""What updates, validations and searches ask of a GPU, counted without one: budgets hold."""

import shutil
import sys
from typing import Any

import pytest
import torch

from tests.support.fake_cuda import Figures, build_hooks, counted

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

FP32 = ["cuda:0 torch.float32"]
CASES: dict[str, dict[str, Any]] = {
    "bf16": {"model": "wmt14_en_fr"},
    "fp32": {"model": "wmt14_en_fr", "precision": "fp32", "tokens": 16_000},
    "adam": {"model": "small", "optimizer": "adam"},
    "16,000 tokens": {"model": "wmt14_en_fr", "tokens": 16_000},
}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figures]:
    hooks = build_hooks(tmp_path_factory.mktemp("hooks"))
    return dict(zip(CASES, counted(hooks, list(CASES.values())), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_an_update_waits_for_nothing_copies_its_batch_alone_and_is_of_float32(
    figures: dict[str, Figures], case: str
) -> None:
    found = figures[case]
    assert found["waits"] == []
    assert found["uploads"] == 4  # source, previous, places and target
    assert found["validation_waits"] == ["tolist"]
    # Each step, once: of the most tokens, five words and two, and of </s>.
    assert found["search_waits"] == ["cpu"] * (5 + 2 + 1)

    assert [found[name] for name in ("parameters", "gradients", "states")] == [FP32] * 3
    assert found["loss"] == ["cuda:0", "torch.float64"]
    assert found["step_launches"] <= 10


def test_a_micro_batch_of_16_000_tokens_fits_a_gpu_of_today(
    figures: dict[str, Figures],
) -> None:
    assert figures["bf16"]["launches"] <= 1800
    for case, size in (("16,000 tokens", 8e9), ("fp32", 14e9)):
        assert figures[case]["peak_bytes"] < size
        assert figures[case]["logits_bytes"] < 1e9
