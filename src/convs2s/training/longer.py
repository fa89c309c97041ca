"""Go on from the last state of a shorter training: the same one with a smaller maximum of epochs.

The shorter training has another identity, and so a folder of states of its own. Both trainings
begin with the same updates (``identity.is_longer``). So the last state of the shorter one is also a
state of the longer one, which then ends with the same bytes as a training from the start.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from convs2s.config.model import Recipe
from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_json, write_json
from convs2s.training.log import log
from convs2s.training.schedule import TrainerState
from convs2s.training.state_folder import StateFolder

if TYPE_CHECKING:
    from torch import Tensor

_File = tuple[str, Mapping[str, "Tensor"], Mapping[str, object]]
"""Name, tensors and description of a file of states."""


def take_over(folder: StateFolder, recipe: Recipe) -> Path | None:
    """Write the state of the shorter training that got furthest into the folder of this training.

    Do nothing if the folder has a last state already. The last state is written last, so that after
    a kill the next try takes over all files again.

    Args:
        folder: the folder of this training, which is locked.
        recipe: the recipe of this training.

    Returns:
        The folder of the shorter training; None if nothing was taken over.

    Raises:
        UserError: A file cannot be written.
    """
    if folder.last.is_file():
        return None
    furthest = None
    updates = 0
    files: list[_File] = []
    for other in folder.shorter():
        try:
            state, found = _states(other, recipe)
        except UserError as error:
            log(f"cannot go on from {other.path}: {error}")
            continue
        if state.updates > updates:
            furthest = other
            updates = state.updates
            files = found
    if furthest is None:
        return None
    if furthest.kernels.is_file():
        write_json(folder.kernels, read_json(furthest.kernels))
    for name, tensors, description in files:
        folder.write(folder.path / name, tensors, description)
    log(f"going on from {furthest.path}, the same training with fewer epochs")
    return furthest.path


def _states(folder: StateFolder, recipe: Recipe) -> tuple[TrainerState, list[_File]]:
    """Return the state of a shorter training as a state by ``recipe``, and the files to write.

    The files are the weights that the model may be made from, and the last state.

    Raises:
        UserError: A file is missing, damaged or of another epoch, or the tensors that the training
            needs to go on were dropped.
    """
    tensors, fields = folder.read(folder.last, "cpu")
    with failures_of_file(str(folder.last), "not a state of a training"):
        state = TypeAdapter(TrainerState).validate_python(fields)
    state = state.with_maximum_of(recipe)
    if not tensors and state.schedule.stop_reason is None:
        raise UserError(f"{folder.last}: has no tensors, which were dropped at the end")
    epochs = {}  # file of weights -> the epoch that it must be of
    if recipe.average is not None:
        for record in state.history[-recipe.average :]:
            epochs[folder.epoch_file(record.epoch)] = record.epoch
    elif state.schedule.best_epoch:
        epochs[folder.best] = state.schedule.best_epoch
    files: list[_File] = []
    for path, epoch in epochs.items():
        weights, description = folder.read(path, "cpu", epoch)
        files.append((path.name, weights, description))
    files.append((folder.last.name, tensors, asdict(state)))
    return state, files


def drop_shorter(folder: StateFolder) -> None:
    """Drop the tensors of the last states of shorter trainings that have ended.

    Call this when the training of ``folder`` has ended: longer trainings now go on from its state.
    The models of the shorter trainings can still be exported again.
    """
    for other in folder.shorter():
        try:
            tensors, fields = other.read(other.last, "cpu")
        except UserError as error:
            log(f"a state of a shorter training is not removed: {error}")
            continue
        has_ended = fields.get("validation") is not None
        if tensors and has_ended:
            other.write(other.last, {}, fields)
