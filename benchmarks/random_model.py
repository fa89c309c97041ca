"""A model file of random weights: how fast it translates does not depend on what it has learned."""

from pathlib import Path

import torch

from convs2s.config.architecture import Architecture
from convs2s.data.vocabulary import SPECIAL_TOKENS
from convs2s.model_file import ModelDescription, calibrated, save_model
from convs2s.models.build import build_network


def write_random_model(path: Path, architecture: Architecture, types: int) -> None:
    """Write a model file of ``types`` types a side, whose tokens are ``w0``, ``w1`` and so on.

    Args:
        path: the file.
        architecture: of a model of config/models.yaml.
        types: special tokens among them.
    """
    torch.manual_seed(1)
    tokens = [f"w{number}" for number in range(types - len(SPECIAL_TOKENS))]
    description = ModelDescription(
        task="random",
        languages={"source": "en", "target": "fr"},
        preparation="moses_test",
        architecture=architecture,
        source_types=tokens,
        target_types=tokens,
        bpe_codes=None,
        glossaries=[],
        splittable=None,
        dictionary={},
        training={},
    )
    weights = build_network(architecture, types, types).state_dict()
    save_model(path, weights, calibrated(description, weights))
