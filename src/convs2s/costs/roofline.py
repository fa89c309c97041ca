"""How long a training of a ConvS2S network would take on a GPU: an estimate by its peak rates.

A roofline: the products run at a share of the GPU's matrix rate, all else at the rate of its
memory; where the host starts operations more slowly than that, it decides. Nothing is measured.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from convs2s.config.costs import Costs, GpuRates, KnownTraining
from convs2s.config.model import Recipe
from convs2s.costs.memory import FLOAT_BYTES

_FLOPS_PER_WEIGHT = 6  # of a token: a multiply-add forward, two backward
_BYTES = {"fp32": FLOAT_BYTES, "bf16": 2}
_OPTIMIZER_PASSES = 12  # over all parameters in fp32: gradient, clipping, velocity, step
_SCORE_PASSES = 6  # over the scores of all types in fp32: softmax and loss, and back
_COMPILED = 1 / 3  # of the operations that the host starts, with `compile`


@dataclass(frozen=True)
class Work:
    """What an update of a recipe asks of a GPU."""

    weights: int  # numbers that each token is multiplied by
    parameters: int  # all numbers
    blocks: int  # of encoder and decoder
    widths: int  # their sum over the blocks
    types: int  # of the target
    recipe: Recipe


class Estimate(NamedTuple):
    """What a GPU is expected to do with a training."""

    precision: str  # in which it multiplies
    rate: float  # target tokens a second
    hours: float  # of the whole training


def estimate(work: Work, known: KnownTraining, gpu: GpuRates, costs: Costs) -> Estimate | None:
    """Return what a training whose hours a paper states would take; None without the precision."""
    precision = work.recipe.precision
    if precision == "bf16" and gpu.bf16 is None:
        return None
    seconds = _seconds_per_token(work, gpu, costs, precision)
    stated = _seconds_per_token(work, costs.paper_gpu, costs, "fp32")
    named = "tf32" if precision == "fp32" and gpu.tf32 else precision
    return Estimate(named, 1 / seconds, known.hours * seconds / stated)


def _seconds_per_token(work: Work, gpu: GpuRates, costs: Costs, precision: str) -> float:
    """Return the seconds of one GPU that trains alone by a recipe, for each target token."""
    recipe = work.recipe
    sentences = recipe.batch.sentences or math.inf
    tokens = min(recipe.batch.tokens or math.inf, sentences * costs.sentence_tokens.value)
    micro_batches = math.ceil(tokens / (recipe.batch.micro_batch_tokens or tokens))
    peak = (gpu.bf16 if precision == "bf16" else gpu.tf32) or gpu.fp32
    flops = _FLOPS_PER_WEIGHT * work.weights * tokens
    products = flops / (costs.share_of_peak.value * peak * 1e12)
    of_blocks = costs.block_passes.value * work.widths * _BYTES[precision]
    of_scores = _SCORE_PASSES * work.types * FLOAT_BYTES
    of_parameters = _OPTIMIZER_PASSES * work.parameters * FLOAT_BYTES
    moved = tokens * (of_blocks + of_scores) + of_parameters
    device = products + moved / (gpu.bandwidth * 1e9)
    operations = micro_batches * work.blocks * costs.block_operations.value
    if recipe.compile:
        operations *= _COMPILED
    host = operations * costs.operation_microseconds.value * 1e-6
    return max(device, host) / tokens
