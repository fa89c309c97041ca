"""The expected speed of a training on one device, and on several GPUs.

The speed of a GPU is calculated from its peak rates by a roofline model. The GPU computes matrix
products at a share of its peak rate. All other operations run at the bandwidth of its memory. If
the host takes longer to start the operations than the GPU to run them, the host's time counts. With
several GPUs, the time to sum their gradients is added. For this sum, each GPU sends its gradients
nearly twice (ring all-reduce).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from convs2s.config.architecture import Architecture
from convs2s.config.costs import Costs, GpuRates
from convs2s.config.model import MICRO_BATCH_TOKENS, Recipe, tokens_for_memory
from convs2s.costs.memory import FLOAT_BYTES

_PLACES = ((1, 1), (1, 8), (2, 8))  # the number of nodes, and of GPUs on each
# For each token: one multiply-add in the forward pass, and two in the backward pass.
_FLOPS_PER_WEIGHT = 6
_NUMBER_BYTES = {"fp32": FLOAT_BYTES, "bf16": 2}
# How often an update reads or writes an fp32 number for every parameter: for the gradient, its
# clipping, the velocity and the step.
_OPTIMIZER_PASSES = 12
# How often the fp32 scores of all types are read or written for a token: for softmax and loss, in
# the forward and the backward pass.
_SCORE_PASSES = 6
_COMPILED = 1 / 3  # the share of operations that the host still starts with `compile`


@dataclass(frozen=True)
class Work:
    """A network and its recipe, from which the work of an update is computed."""

    architecture: Architecture
    recipe: Recipe
    types: tuple[int, int]  # the sizes of the source and target vocabularies
    tokens: float  # target tokens of an update
    threads: int  # the CPU threads of a training without a GPU

    @cached_property
    def parameters(self) -> int:
        """The number of parameters; 0 for an extension's network that does not count them."""
        return self.architecture.count_parameters(*self.types)

    @cached_property
    def weights(self) -> int:
        """The number of parameters that each token is multiplied by: all except embeddings."""
        return self.parameters - self.architecture.count_embeddings(*self.types)


class Update(NamedTuple):
    """An update on one device."""

    seconds: float
    precision: str  # the precision of the matrix products: fp32, tf32 or bf16
    # The number of operations that the host starts on the GPU; None if not counted.
    launches: int | None


class Speed(Protocol):
    """The speed of updates on one device."""

    @property
    def device(self) -> str:
        """The name of the device."""

    @property
    def is_gpu(self) -> bool:
        """Whether the device is a GPU."""

    @property
    def gpu(self) -> GpuRates | None:
        """The rates of the device in config/costs.yaml; None if the file does not have it."""

    def update(self, work: Work, tokens: float) -> Update | None:
        """Return an update of ``tokens`` target tokens; None if there is no estimate."""


class Estimate(NamedTuple):
    """The expected speed of a training on some devices."""

    place: str  # number and name of the devices
    devices: int  # the number of GPUs, or of CPU threads if there is no GPU
    update: Update  # the update of one device
    rate: float  # target tokens per second, of all devices together


def estimates(speed: Speed, work: Work) -> Iterator[Estimate]:
    """Yield the expected speed on one device, and on several GPUs if their links are known."""
    if not speed.is_gpu:
        if update := speed.update(work, work.tokens):
            place = f"{work.threads} CPU thread{'s' if work.threads > 1 else ''}"
            rate = work.tokens / update.seconds
            yield Estimate(place, work.threads, update, rate)
        return
    # GB/s between the GPUs of a node, and between nodes.
    links = (speed.gpu.link, speed.gpu.network) if speed.gpu else (None, None)
    for nodes, gpus in _PLACES:
        count = nodes * gpus
        update = speed.update(work, work.tokens / count)
        # One GPU uses no link and sends nothing. One node uses the first link, two nodes use both.
        used = links[:nodes] if count > 1 else ()
        if update is None or None in used:
            return
        # No link is None any more; `filter` only tells this to the type checker.
        slowest = min(filter(None, used), default=math.inf)
        # In a ring all-reduce of n GPUs, each sends 2 (n - 1) / n times the gradients.
        sent = 2 * (count - 1) / count * FLOAT_BYTES * work.parameters
        seconds = update.seconds + sent / (slowest * 1e9)
        place = f"{gpus} {speed.device}"
        if nodes > 1:
            place = f"{nodes} x {place}"
        yield Estimate(place, count, update, work.tokens / seconds)


@dataclass(frozen=True)
class CalculatedSpeed:
    """The speed of a GPU, calculated from its rates in config/costs.yaml."""

    gpu: GpuRates
    costs: Costs
    is_gpu = True

    @property
    def device(self) -> str:
        """The name of the GPU."""
        return self.gpu.name

    def update(self, work: Work, tokens: float) -> Update | None:
        """Return an update of ``tokens`` target tokens.

        Return None if the network has no convolutional blocks, or if the GPU lacks the recipe's
        precision.
        """
        gpu = self.gpu
        costs = self.costs
        recipe = work.recipe
        precision = recipe.precision
        if precision == "auto":
            precision = "bf16" if gpu.bf16 else "fp32"
        layers = work.architecture.blocks
        if not layers or (precision == "bf16" and gpu.bf16 is None):
            return None
        # TFLOP/s of matrix products. With precision fp32 they run as TF32 if the GPU has it.
        matrix_rate = gpu.bf16 if precision == "bf16" else gpu.tf32
        peak = matrix_rate or gpu.fp32
        flops = _FLOPS_PER_WEIGHT * work.weights * tokens
        product_seconds = flops / (costs.share_of_peak.value * peak * 1e12)
        widths = sum(layer.width for layer in layers)
        # Bytes that the GPU reads and writes: for each token in the blocks and for its scores, and
        # for each update at the parameters.
        block_bytes = costs.block_passes.value * widths * _NUMBER_BYTES[precision]
        score_bytes = _SCORE_PASSES * work.types[1] * FLOAT_BYTES
        parameter_bytes = _OPTIMIZER_PASSES * work.parameters * FLOAT_BYTES
        moved_bytes = tokens * (block_bytes + score_bytes) + parameter_bytes
        device_seconds = product_seconds + moved_bytes / (gpu.bandwidth * 1e9)
        # Maximum number of tokens of a micro-batch. A training replaces the default limit by one
        # that depends on the GPU's memory.
        limit = recipe.batch.micro_batch_tokens or tokens
        if limit == MICRO_BATCH_TOKENS:
            limit = tokens_for_memory(gpu.memory * 1e9)
        launches = len(layers) * costs.block_launches.value * math.ceil(tokens / limit)
        if recipe.compile:
            launches *= _COMPILED
        # A training records micro-batches as CUDA graphs, except with vocabulary selection. If the
        # shape of a micro-batch is not new, the graph of this shape is replayed
        # (`convs2s.training.recorded`).
        if work.architecture.selection is None:
            launches *= costs.new_shapes.value
            launches += costs.update_launches.value
        host_seconds = launches * costs.launch_microseconds.value * 1e-6
        product_precision = "tf32" if precision == "fp32" and gpu.tf32 else precision
        seconds = max(device_seconds, host_seconds)
        return Update(seconds, product_precision, round(launches))
