"""Training jobs, and the identity of a training: everything that its result depends on."""

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
"""Part of the identity of a training; increased only when a change of the code changes results.

When it changes, the workflow trains all models again. No other change of the code does that.
"""


@dataclass(frozen=True)
class TrainingJob:
    """Everything that one training is asked to do."""

    folder: Path  # the prepared folder of a task, with ``dataset/`` and ``vocabulary/``
    architecture: Architecture
    recipe: Recipe
    seed: int  # seed of the initialization, the data order and dropout
    output: Path  # the model file to write; states and history are written beside it
    # The alignment dictionary to put into the model file, or None.
    dictionary: Path | None
    device: str  # ``cpu``, ``cuda`` or ``auto``
    threads: int  # CPU threads of each worker
    # The alignment's ``candidates.tsv``, if the model selects its vocabulary; else None.
    candidates: Path | None = None
    # Minutes after which a scheduler ends the job, or None.
    time_limit: float | None = None
    # Whether Slurm queues the job again if it stops before the end.
    requeues: bool = False
    # Library of float32 matrix products on a CPU; ``auto``: the fastest on this machine.
    products: Products = "auto"
    # Truecasers of source and target, to put into the model file, or None.
    truecasers: Sequence[Path] | None = None
    label: str = ""  # beginning of each line of the log, such as ``TASK/MODEL/seed1``
    quiet: bool = False  # whether to log only to the file beside the states
    # The model file to start from, in place of the one that the recipe's ``start`` names, or None.
    start: Path | None = None
    # A folder or URL to which the states are also copied, or None.
    states: str | None = None

    def start_file(self, start: Start) -> Path:
        """Return the file of the model that the training starts from.

        Raises:
            UserError: The file does not exist.
        """
        path = self.start or Path(start.model)
        if not path.is_file():
            raise UserError(
                f"{path}: no such file, but the training starts from it (training.start)"
            )
        return path


def identity(job: TrainingJob, checksums: Mapping[str, str]) -> dict[str, Any]:
    """Return everything that the result of a training depends on, except the machine.

    Trainings with equal identities share states and results (``digest_of``).

    Args:
        job: the training.
        checksums: checksums of the token stores and vocabularies (``TrainingData.checksums``).

    Raises:
        UserError: The model that the training starts from is missing.
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
    """Return file name -> SHA-256 of the data of a training, including the candidates, if any."""
    known = dict(checksums)
    if job.candidates is not None:
        known["candidates.tsv"] = sha256(job.candidates)
    return known


def digest_of(identity: Mapping[str, Any]) -> str:
    """Return the fingerprint of an identity, which is the name of the training's state folder."""
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return a line for each key whose values differ: ``training.clip is 0.1, not 0.2``.

    The first value is that of ``before``. Keys of nested mappings are joined by dots. The lines are
    sorted by key.
    """
    return [
        f"{key} is {old}, not {new}"
        for key, (old, new) in differing(before, after).items()
    ]


def differing(
    before: Mapping[str, object], after: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Return each key whose values differ, with both values, sorted by key.

    The first value is that of ``before``. Keys of nested mappings are joined by dots. A key that is
    missing has the value None.
    """
    old = flatten(before)
    new = flatten(after)
    found = {}
    for key in sorted(old | new):
        if old.get(key) != new.get(key):
            found[key] = (old.get(key), new.get(key))
    return found


def may_be_longer(kind: str, maximum_epochs: float | None) -> bool:
    """Return whether a training with a larger maximum of epochs begins with the same updates.

    The learning rate of a cosine depends on the maximum. With a maximum such as 7.5, a training
    makes only a part of the updates of epoch 8, and then validates. A longer training makes all
    updates of this epoch first.

    Args:
        kind: kind of the schedule.
        maximum_epochs: the smaller maximum; None: there is none, and so no larger one.
    """
    if kind == "cosine" or maximum_epochs is None:
        return False
    return maximum_epochs.is_integer()


def is_longer(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Return whether ``after`` is ``before`` with more epochs, and so may go on from its states.

    Both are identities or contents of ``settings.json``.
    """
    changed = differing(before, after)
    if list(changed) != ["training.maximum_epochs"]:
        return False
    old, new = changed["training.maximum_epochs"]
    if not isinstance(old, float):  # there is no maximum to raise
        return False
    is_larger = new is None or (isinstance(new, float) and new > old)
    kind = flatten(after)["training.schedule.kind"]
    return is_larger and may_be_longer(str(kind), old)


def flatten(nested: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return nested mappings as one flat mapping, with the keys joined by dots."""
    flat: dict[str, object] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
