"""The speed of a training, calculated for a GPU, and for several from that of one.

The calculation is a roofline model, computed from peak rates. Matrix products run at a share of the
GPU's matrix rate, and all other operations at the rate of its memory. If the host needs more time
than that to start the operations, the host's time counts. The sum of the gradients over several
GPUs comes on top: each GPU sends them nearly twice (ring all-reduce).
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

_PLACES = ((1, 1), (1, 8), (2, 8))  # nodes, and GPUs of each
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
    """A network and its recipe, from which the work of an update is computed."""

    architecture: Architecture
    recipe: Recipe
    types: tuple[int, int]  # the sizes of the source and target vocabularies
    tokens: float  # target tokens of an update
    threads: int  # CPU threads of a training without a GPU

    @cached_property
    def parameters(self) -> int:
        """The number of parameters; 0 for an extension's network that does not count them."""
        return self.architecture.count_parameters(*self.types)

    @cached_property
    def weights(self) -> int:
        """The parameters that each token is multiplied by, so without embeddings."""
        return self.parameters - self.architecture.count_embeddings(*self.types)


class Update(NamedTuple):
    """An update on one device."""

    seconds: float
    precision: str  # the precision of the matrix products: fp32, tf32 or bf16
    launches: int | None  # operations that the host starts on the GPU, if counted


class Speed(Protocol):
    """How fast one device makes updates."""

    @property
    def device(self) -> str:
        """The name of the device."""

    @property
    def is_gpu(self) -> bool:
        """Whether the device is a GPU."""

    @property
    def gpu(self) -> GpuRates | None:
        """The rates of the device in config/costs.yaml, if it is there."""

    def update(self, work: Work, tokens: float) -> Update | None:
        """Return an update of so many target tokens; None if there is no estimate."""


class Estimate(NamedTuple):
    """The expected speed of a training on some devices."""

    place: str  # number and name of the devices
    devices: int  # the number of GPUs, or without a GPU of threads
    update: Update  # that of one of the GPUs
    rate: float  # target tokens per second


def estimates(speed: Speed, work: Work) -> Iterator[Estimate]:
    """Yield the expected speed on one device, and on several GPUs if their links are known."""
    if not speed.is_gpu:
        if update := speed.update(work, work.tokens):
            place = f"{work.threads} CPU thread{'s' if work.threads > 1 else ''}"
            rate = work.tokens / update.seconds
            yield Estimate(place, work.threads, update, rate)
        return
    links = (speed.gpu.link, speed.gpu.network) if speed.gpu else (None, None)
    for nodes, gpus in _PLACES:
        count = nodes * gpus
        update = speed.update(work, work.tokens / count)
        used = links[:nodes] if count > 1 else ()
        if update is None or None in used:
            return
        slowest = min(filter(None, used), default=math.inf)
        sent = 2 * (count - 1) / count * FLOAT_BYTES * work.parameters
        seconds = update.seconds + sent / (slowest * 1e9)
        place = f"{gpus} {speed.device}"
        if nodes > 1:
            place = f"{nodes} x {place}"
        yield Estimate(place, count, update, work.tokens / seconds)


@dataclass(frozen=True)
class CalculatedSpeed:
    """The speed of a GPU of config/costs.yaml, by its rates."""

    gpu: GpuRates
    costs: Costs
    is_gpu = True

    @property
    def device(self) -> str:
        """The name of the GPU."""
        return self.gpu.name

    def update(self, work: Work, tokens: float) -> Update | None:
        """Return an update of so many target tokens.

        It is None for a network without convolutional blocks, and if the GPU lacks the recipe's
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
        # TFLOP/s of matrix products. A GPU without the faster precision multiplies in fp32.
        matrix_rate = gpu.bf16 if precision == "bf16" else gpu.tf32
        peak = matrix_rate or gpu.fp32
        flops = _FLOPS_PER_WEIGHT * work.weights * tokens
        product_seconds = flops / (costs.share_of_peak.value * peak * 1e12)
        widths = sum(layer.width for layer in layers)
        block_bytes = costs.block_passes.value * widths * _BYTES[precision]
        score_bytes = _SCORE_PASSES * work.types[1] * FLOAT_BYTES
        parameter_bytes = _OPTIMIZER_PASSES * work.parameters * FLOAT_BYTES
        moved_bytes = tokens * (block_bytes + score_bytes) + parameter_bytes
        device_seconds = product_seconds + moved_bytes / (gpu.bandwidth * 1e9)
        limit = recipe.batch.micro_batch_tokens or tokens
        if limit == MICRO_BATCH_TOKENS:
            limit = tokens_for_memory(gpu.memory * 1e9)
        launches = len(layers) * costs.block_launches.value * math.ceil(tokens / limit)
        if recipe.compile:
            launches *= _COMPILED
        # A micro-batch is replayed as a CUDA graph, unless its shape is new
        # (`convs2s.training.recorded`).
        if work.architecture.selection is None:
            launches *= costs.new_shapes.value
            launches += costs.update_launches.value
        host_seconds = launches * costs.launch_microseconds.value * 1e-6
        products = "tf32" if precision == "fp32" and gpu.tf32 else precision
        return Update(max(device_seconds, host_seconds), products, round(launches))
