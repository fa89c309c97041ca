"""An estimate of the hours that a training of a ConvS2S network would take on a GPU.

It is a roofline model, computed from peak rates; nothing is measured. Matrix products run at a
share of the GPU's matrix rate, and all other operations at the rate of its memory. If the host
needs more time than that to start the operations, the host's time counts.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from convs2s.config.costs import Costs, GpuRates, KnownTraining
from convs2s.config.model import Recipe
from convs2s.costs.memory import FLOAT_BYTES

_FLOPS_PER_WEIGHT = 6  # for each token: one multiply-add forward, two backward
_BYTES = {"fp32": FLOAT_BYTES, "bf16": 2}
# How often an update reads or writes all parameters in fp32: gradient, clipping, velocity, step.
_OPTIMIZER_PASSES = 12
# How often a token reads or writes its scores of all types in fp32: softmax and loss, forward and
# backward.
_SCORE_PASSES = 6
_COMPILED = 1 / 3  # the share of operations that the host still starts with `compile`


@dataclass(frozen=True)
class Work:
    """The sizes of a network and the recipe, from which the work of an update is computed."""

    # The parameters that each token is multiplied by, so without embeddings.
    weights: int
    parameters: int  # all parameters
    blocks: int  # the number of blocks of encoder and decoder together
    widths: int  # the sum of the widths of these blocks
    types: int  # the size of the target vocabulary
    recipe: Recipe


class Estimate(NamedTuple):
    """The expected speed and duration of a training on a GPU."""

    precision: str  # the precision of the matrix products: fp32, tf32 or bf16
    rate: float  # target tokens per second
    hours: float  # hours of the whole training


def estimate(
    work: Work,
    known: KnownTraining,
    gpu: GpuRates,
    costs: Costs,
) -> Estimate | None:
    """Return the estimate for a training on a GPU; None if the GPU lacks the recipe's precision.

    The hours are those that the paper states, times the calculated ratio of the GPU's time for a
    token to that of the paper's GPU.
    """
    precision = work.recipe.precision
    if precision == "bf16" and gpu.bf16 is None:
        return None
    seconds = _seconds_per_token(work, gpu, costs, precision)
    seconds_of_paper = _seconds_per_token(work, costs.paper_gpu, costs, "fp32")
    precision_of_products = "tf32" if precision == "fp32" and gpu.tf32 else precision
    hours = known.hours * seconds / seconds_of_paper
    return Estimate(precision_of_products, 1 / seconds, hours)


def _seconds_per_token(
    work: Work,
    gpu: GpuRates,
    costs: Costs,
    precision: str,
) -> float:
    """Return the seconds for each target token of an update on a single GPU."""
    recipe = work.recipe
    sentences = recipe.batch.sentences or math.inf
    tokens = min(
        recipe.batch.tokens or math.inf, sentences * costs.sentence_tokens.value
    )
    micro_batches = math.ceil(tokens / (recipe.batch.micro_batch_tokens or tokens))
    # TFLOP/s of matrix products. A GPU without the faster precision multiplies in fp32.
    matrix_rate = gpu.bf16 if precision == "bf16" else gpu.tf32
    peak = matrix_rate or gpu.fp32
    flops = _FLOPS_PER_WEIGHT * work.weights * tokens
    product_seconds = flops / (costs.share_of_peak.value * peak * 1e12)
    block_bytes = costs.block_passes.value * work.widths * _BYTES[precision]
    score_bytes = _SCORE_PASSES * work.types * FLOAT_BYTES
    parameter_bytes = _OPTIMIZER_PASSES * work.parameters * FLOAT_BYTES
    moved_bytes = tokens * (block_bytes + score_bytes) + parameter_bytes
    device_seconds = product_seconds + moved_bytes / (gpu.bandwidth * 1e9)
    operations = micro_batches * work.blocks * costs.block_operations.value
    if recipe.compile:
        operations *= _COMPILED
    host_seconds = operations * costs.operation_microseconds.value * 1e-6
    return max(device_seconds, host_seconds) / tokens
