"""The memory of a training: the estimate, and the request to a scheduler.

Snakemake imports this module to plan a run, so it counts parameters without torch.
"""

import math

from convs2s.config.corpus import VocabularySettings
from convs2s.config.model import MICRO_BATCH_TOKENS, Recipe
from convs2s.config.settings import Settings

FLOAT_BYTES = 4
OPTIMIZER_NUMBERS = {"sgd": 1, "nesterov": 2, "adam": 3}
"""Optimizer -> how many numbers it keeps for each parameter, including the parameter itself."""

_TYPES_PER_MERGE = 1.12  # 40,000 merges gave 44,463 types (WMT'14 English-French)
# The size of a vocabulary that keeps all types of a text of unknown size.
_TYPES_OF_ALL = 50_000

# The memory of a training's process apart from its network: torch, its libraries and their buffers.
# The demo's training, of a million parameters, takes 0.5 to 0.6 GB at most in total (its benchmark
# file, 2 cores, 2026-11-22).
_PROCESS_BYTES = 400_000_000
# The same for a process that computes on a GPU, with CUDA and its libraries. This number was not
# measured here, but estimated from other sources.
_GPU_PROCESS_BYTES = 3_000_000_000
_LEAST_REQUEST_BYTES = 16_000_000_000  # the minimum request of a training's job
# Numbers for each token and type: the score, its softmax and its gradient.
_OUTPUTS = 3


def training_memory(
    recipe: Recipe,
    parameters: int,
    target_types: int,
    gpus: int,
) -> int:
    """Return the bytes of main memory that all workers of a training take on one node.

    A node has one worker for each of its ``gpus`` GPUs, or one worker on the CPUs if ``gpus`` is 0.
    A worker on a GPU needs main memory for copies of its weights when it writes a state.
    """
    # For each parameter: its gradient, and the numbers that the optimizer keeps.
    numbers = (1 + OPTIMIZER_NUMBERS[recipe.optimizer]) * parameters
    if gpus:
        return gpus * (_GPU_PROCESS_BYTES + numbers * FLOAT_BYTES)
    # If a recipe does not limit the tokens of a micro-batch, the default limit is assumed.
    tokens = recipe.batch.micro_batch_tokens or MICRO_BATCH_TOKENS
    if recipe.batch.tokens:
        tokens = min(recipe.batch.tokens, tokens)
    numbers += _OUTPUTS * tokens * target_types
    return _PROCESS_BYTES + numbers * FLOAT_BYTES


def requested_memory(
    settings: Settings,
    name: str,
    model: str,
    gpus: int,
) -> int:
    """Return the megabytes of memory that a training requests on each of its nodes.

    ``gpus`` is the number of GPUs of a node. The vocabularies are assumed to have the largest size
    that the configuration allows, so that no file has to be read.
    """
    source, target = types_of(settings.tasks[name].vocabulary, None)
    trained = settings.models[model]
    parameters = trained.architecture.count_parameters(source, target)
    memory = training_memory(trained.training, parameters, target, gpus)
    return math.ceil(max(_LEAST_REQUEST_BYTES, memory) / 1e6)


def types_of(vocabulary: VocabularySettings, pairs: int | None) -> tuple[int, int]:
    """Return the estimated numbers of source and target types of a text with ``pairs`` pairs.

    If ``pairs`` is None, return the largest numbers that the vocabularies may have.
    """
    source = vocabulary.source_size
    target = vocabulary.target_size
    if vocabulary.kind == "bpe":
        source = target = round(vocabulary.merges * _TYPES_PER_MERGE)
    if pairs is None:
        return source or _TYPES_OF_ALL, target or _TYPES_OF_ALL
    # Heaps' law, fitted to news of 875 to 14,006 pairs.
    present = round(90 * math.pow(pairs, 0.6))
    return min(source or present, present), min(target or present, present)
