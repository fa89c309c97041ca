"""What a training is asked to do, and what it is known by."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convs2s.config.architecture import Architecture
from convs2s.config.identity import recipe_identity
from convs2s.config.model import Recipe, Start
from convs2s.config.options import Products
from convs2s.errors import UserError
from convs2s.files.checksums import sha256

TRAINING_VERSION = 4
"""Raised only when a change of the code changes results: it is part of a training's identity.

The workflow trains again when it changes, and for no other change of the code.
"""


@dataclass(frozen=True)
class TrainingJob:
    """One training."""

    folder: Path  # a task's prepared folder: ``dataset/`` and ``vocabulary/``
    architecture: Architecture
    recipe: Recipe
    seed: int  # of the initialization, the data order and dropout
    output: Path  # the model file to write; the state and history lie beside it
    dictionary: Path | None  # the alignment dictionary to put into the model file, or None
    device: str  # ``cpu``, ``cuda`` or ``auto``
    threads: int  # CPU threads of each worker
    # the alignment's candidates where the model selects its vocabulary, or None
    candidates: Path | None = None
    time_limit: float | None = None  # minutes after which a scheduler ends the job, or None
    requeues: bool = False  # whether Slurm is to queue its job again where it stops before the end
    # library of float32 products on a CPU; ``auto``: the fastest on this machine
    products: Products = "auto"
    # those of source and target, to put into the model file, or None
    truecasers: Sequence[Path] | None = None
    label: str = ""  # what its lines begin with, such as ``TASK/MODEL/seed1``
    quiet: bool = False  # whether they are in the log beside its states alone
    # where the model lies that ``start`` of the recipe names, if not at the path there
    start: Path | None = None
    states: str | None = None  # a folder or URL where the states are kept as well

    def start_file(self, start: Start) -> Path:
        """Return where the model lies that the training begins with.

        Raises:
            UserError: There is none.
        """
        path = self.start or Path(start.model)
        if not path.is_file():
            raise UserError(f"{path}: no such file, though training.start begins with it")
        return path


def identity(job: TrainingJob, checksums: Mapping[str, str]) -> dict[str, Any]:
    """Return everything that a training's result depends on but the machine.

    Raises:
        UserError: The model that it starts from is missing.
    """
    known = recipe_identity(job.architecture, job.recipe)
    start = job.recipe.start
    if start is not None:
        known["start"] = {"as": start.mode, "sha256": sha256(job.start_file(start))}
    return {
        **known,
        "seed": job.seed,
        "data": data_identity(job, checksums),
        "version": TRAINING_VERSION,
    }


def data_identity(job: TrainingJob, checksums: Mapping[str, str]) -> dict[str, str]:
    """Return the checksums of what a training reads, by name."""
    known = dict(checksums)
    if job.candidates is not None:
        known["candidates.tsv"] = sha256(job.candidates)
    return known


def digest_of(identity: Mapping[str, Any]) -> str:
    """Return the fingerprint of a training's identity: the name of its folder."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Say of each key by which nested mappings differ what it was, and is not."""
    old = flatten(before)
    new = flatten(after)
    found = []
    for key in sorted(old | new):
        if old.get(key) != new.get(key):
            found.append(f"{key} is {old.get(key)}, not {new.get(key)}")
    return found


def flatten(nested: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return nested mappings as one, with keys joined by dots."""
    flat: dict[str, object] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
