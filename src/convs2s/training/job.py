"""What a training is asked to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.architecture import Architecture
from convs2s.config.model import Recipe
from convs2s.config.options import Products


@dataclass(frozen=True)
class TrainingJob:
    """One training.

    Attributes:
        folder: a task's prepared folder: ``dataset/`` and ``vocabulary/``.
        architecture: the network.
        recipe: how it is trained.
        seed: of the initialization, the data order and dropout.
        output: the model file to write; the state and history lie beside it.
        dictionary: the alignment dictionary to put into the model file, or None.
        device: ``cpu``, ``cuda`` or ``auto``.
        threads: CPU threads of each worker.
        candidates: the alignment's candidates where the model selects its vocabulary, or None.
        time_limit: minutes after which a scheduler ends the job, or None.
        products: who computes float32 products on a CPU; ``auto``: the fastest on this machine.
        truecasers: those of source and target, to put into the model file, or None.
        label: what its lines begin with, such as ``TASK/MODEL/seed1``.
        quiet: whether they are in the log beside its states alone.
        start: where the model lies that ``start`` of the recipe names, if not at the path there.
    """

    folder: Path
    architecture: Architecture
    recipe: Recipe
    seed: int
    output: Path
    dictionary: Path | None
    device: str
    threads: int
    candidates: Path | None = None
    time_limit: float | None = None
    products: Products = "auto"
    truecasers: Sequence[Path] | None = None
    label: str = ""
    quiet: bool = False
    start: Path | None = None
