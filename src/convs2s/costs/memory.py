"""The memory of a training: what a worker takes, and what is asked of a scheduler for all of them.

Snakemake's plan asks it, so it counts parameters without torch.
"""

import math

from convs2s.config.corpus import VocabularySettings
from convs2s.config.model import Recipe
from convs2s.config.settings import Settings

FLOAT_BYTES = 4
OPTIMIZER_NUMBERS = {"sgd": 1, "nesterov": 2, "adam": 3}
"""Numbers that are kept for each parameter, itself among them, by the optimizer."""

_TYPES_PER_MERGE = 1.12  # 44,463 types of 40,000 merges (WMT'14 English-French)
_TYPES_OF_ALL = 50_000  # where every type is kept of text whose size is not known

# A training's process beside its network: torch, its libraries and what they keep. The demo's, of a
# million parameters, holds 0.5 to 0.6 GB at most (its benchmark file, 2 cores, 2026-11-22).
_PROCESS_BYTES = 400_000_000
# One that computes on a GPU, which takes CUDA and its libraries: an outside estimate, not measured.
_GPU_PROCESS_BYTES = 3_000_000_000
_LEAST_REQUEST_BYTES = 16_000_000_000  # of a training's job, whatever its model and its workers
_OUTPUTS = 3  # of each token over all types: the scores, their softmax, its gradient
_MICRO_BATCH_TOKENS = 4000  # where a recipe sets no limit


def worker_memory(recipe: Recipe, parameters: int, target_types: int, *, gpu: bool = False) -> int:
    """Return the bytes of this machine's memory that one worker of a training takes.

    A worker on a GPU has room for copies of its weights, those of a state that is written.
    """
    # On a CPU gradients and what is kept.
    numbers = (1 + OPTIMIZER_NUMBERS[recipe.optimizer]) * parameters
    if gpu:
        return _GPU_PROCESS_BYTES + numbers * FLOAT_BYTES
    tokens = recipe.batch.micro_batch_tokens or _MICRO_BATCH_TOKENS
    if recipe.batch.tokens:
        tokens = min(recipe.batch.tokens, tokens)
    numbers += _OUTPUTS * tokens * target_types
    return _PROCESS_BYTES + numbers * FLOAT_BYTES


def requested_memory(settings: Settings, name: str, model: str, gpus: int) -> int:
    """Return the megabytes that a training asks for on each of its nodes.

    It has a worker on each of so many GPUs of the node, or one on its CPUs. Vocabularies count as
    the largest that the task's text may have, so that nothing is asked of files.
    """
    source, target = types_of(settings.tasks[name].vocabulary, None)
    trained = settings.models[model]
    parameters = trained.architecture.count_parameters(source, target)
    worker = worker_memory(trained.training, parameters, target, gpu=gpus > 0)
    return math.ceil(max(_LEAST_REQUEST_BYTES, max(1, gpus) * worker) / 1e6)


def types_of(vocabulary: VocabularySettings, pairs: int | None) -> tuple[int, int]:
    """Return how many types both sides' vocabularies have, of a text of so many pairs.

    ``pairs`` None: the most that they may have.
    """
    source = vocabulary.source_size
    target = vocabulary.target_size
    if vocabulary.kind == "bpe":
        source = target = round(vocabulary.merges * _TYPES_PER_MERGE)
    if pairs is None:
        return source or _TYPES_OF_ALL, target or _TYPES_OF_ALL
    present = round(90 * math.pow(pairs, 0.6))  # Heaps' law, fitted to news of 875 to 14,006 pairs
    return min(source or present, present), min(target or present, present)
